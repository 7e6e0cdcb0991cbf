// Whether an organisation can take the service away from its neighbours. An honest organisation sends at a
// fifth of the measured capacity, over HTTP and gRPC, requests a chart each second, has detectors that are
// due each minute, and erases a minute of its telemetry each minute. Beside it run the attacks of a list, one
// at a time, from a separate process and address. Each begins on a copy of one data folder with its own
// service, first without the attack, so that "without" and "with" are measured at the same age of the service
// and no attack begins with leftovers of another. The bar: the honest p99 is at most twice the calm value, or
// 500 ms, whichever is more, for each of its activities; no refusal; at most 2,500 MB of memory; quick charts
// again within 5 seconds; and no death of the process. Erasures and new detectors are few, so the calm ones
// of the whole run are one sample. An attack that misses a bar is tried twice more, and the middle one of the
// three trials counts: a p99 of six seconds is one of the slowest requests, and a slow second of the machine
// is enough for that. The service can be that of any checkout: with --tree the same list measures other
// versions. All share the machine's cores, so the attacker runs at a low priority, because its CPU would be
// on another machine. The line `busy-machine` shows the effect of an attacker that only computes. Prints a
// line of JSON for each attack; with --strict it ends with 1 where a bar is missed.
//
// Run: npm run bench -- neighbours [--tree PATH] [--seconds 15] [--calm-seconds 10] [--only TEXT,TEXT]
// [--rate BODIES_A_SECOND] [--keep-erasing] [--strict] [--list]

import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { ingestBodies } from '../ingest/payloads.ts'
import { controls } from './attacks/controls.ts'
import { everyAttack } from './attacks/every-attack.ts'
import { latencyOf, middleTrial, missedBars } from './bars.ts'
import { type Activity, Honest } from './honest.ts'
import { type Body, nowMs } from './rows.ts'
import { type Pace, runTrial, type TrialResult } from './trial.ts'
import { makeWorld, startCopy, type World } from './world.ts'

const { values: flags } = parseArgs({
  options: {
    tree: { type: 'string', default: dirname(dirname(dirname(fileURLToPath(import.meta.url)))) },
    seconds: { type: 'string', default: '15' },
    'calm-seconds': { type: 'string', default: '10' },
    only: { type: 'string', default: '' },
    rate: { type: 'string' },
    'keep-erasing': { type: 'boolean', default: false },
    strict: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
  },
})

/**
 * Activities with one or two samples per phase: their calm latency comes from all calm phases of the run so
 * far.
 */
const rareActivities = ['erasure', 'erased', 'detector'] as const

/** Trials of an attack of which the first missed a bar. */
const trialsOfMissed = 3

/** Share of the measured capacity. */
const honestShare = 0.2
const calibrationSeconds = 8
const calibrationClients = 16

const wanted = flags.only.split(',')
const attacks = everyAttack.filter(({ name }) => wanted.some((text) => name.includes(text)))
if (flags.list) {
  for (const { name, does } of attacks) process.stdout.write(`${name}: ${does}\n`)
  process.exit(0)
}
if (attacks.length === 0)
  throw new Error(`No attack has one of "${flags.only}" in its name; --list has the names.`)

const startMs = performance.now()
const root = mkdtempSync(join(tmpdir(), 'lethe-neighbours-'))
// A signal from outside leaves no process and no folder behind.
process.on('exit', () => rmSync(root, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
const results = await measure(resolve(flags.tree))
const missing = results.filter((result) => missedBars(result).length > 0).length
say(`${missing} of ${results.length} attacks miss a bar`)
process.exitCode = flags.strict && missing > 0 ? 1 : 0

async function measure(tree: string): Promise<TrialResult[]> {
  const commit = execFileSync('git', ['-C', tree, 'rev-parse', '--short', 'HEAD'], {
    encoding: 'utf8',
  }).trim()
  const world = await makeWorld(tree, join(root, 'world'))
  say('the data folder is made')
  const rate = flags.rate === undefined ? (await capacityOf(world)) * honestShare : Number(flags.rate)
  say(`${commit}: the honest organisation sends ${rate.toFixed(1)} bodies a second`)
  /** One result for each attack, and those of all trials. */
  const [results, all]: [TrialResult[], TrialResult[]] = [[], []]
  for (const attack of [...controls, ...attacks]) {
    const pace: Pace = {
      bodies: honestBodies(),
      bodiesPerSecond: rate,
      calmSeconds: Number(flags['calm-seconds']),
      attackSeconds: Number(flags.seconds),
      keepsErasing: flags['keep-erasing'],
    }
    const trials: TrialResult[] = []
    const missedIn: string[][] = []
    do {
      const result = await runTrial(world, join(root, `${attack.name}-${trials.length}`), attack, pace)
      all.push(result)
      const judged = withCalmOfAll(result, all)
      trials.push(judged)
      missedIn.push(missedBars(judged))
      say(`${attack.name}: ${missedIn.at(-1)?.join(', ') || 'meets all bars'}`)
    } while (trials.length < trialsOfMissed && missedIn[0]?.length !== 0)
    const middle = middleTrial(trials)
    results.push(middle)
    const more = { trials: trials.length, trialsMissed: missedIn.filter(({ length }) => length > 0).length }
    const row = { ...middle, missed: missedBars(middle), ...more, bodiesPerSecond: rate, commit }
    process.stdout.write(`${JSON.stringify(row)}\n`)
  }
  // Effects of the machine itself say nothing about the service.
  return results.slice(controls.length)
}

/** Recorded bodies of all signals with times about now; more metrics than logs and traces. */
function honestBodies(): Body[] {
  const fromNs = BigInt(nowMs()) * 1_000_000n
  const of = (signal: Body['signal'], count: number) =>
    ingestBodies(signal, count, 1, fromNs).map((bytes) => ({ signal, bytes }))
  const [metrics, logs, traces] = [of('metrics', 12), of('logs', 6), of('traces', 6)]
  return logs.flatMap((log, at) => [...metrics.slice(2 * at, 2 * at + 2), log, ...traces.slice(at, at + 1)])
}

/** Bodies a second that the service accepts from one organisation alone. */
async function capacityOf(world: World): Promise<number> {
  const folder = join(root, 'calibration')
  const service = await startCopy(world, folder)
  try {
    const honest = new Honest(world, service)
    const bodies = honestBodies()
    await honest.capacity(bodies, calibrationClients, 2)
    const capacity = await honest.capacity(bodies, calibrationClients, calibrationSeconds)
    await honest.stop()
    return capacity
  } finally {
    await service.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}

function withCalmOfAll(result: TrialResult, all: readonly TrialResult[]): TrialResult {
  const calmOf = (activity: Activity) =>
    latencyOf(all.flatMap(({ calm }) => (calm[activity].p99Ms === null ? [] : [calm[activity].p99Ms])))
  const rare = Object.fromEntries(rareActivities.map((activity) => [activity, calmOf(activity)]))
  return { ...result, calm: { ...result.calm, ...rare } }
}

function say(sentence: string): void {
  const elapsed = Math.round((performance.now() - startMs) / 1000)
  process.stderr.write(`${String(elapsed).padStart(5)} s  ${sentence}\n`)
}
