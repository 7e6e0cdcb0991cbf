// A black-box run, in the manner of Jepsen: the service as its user starts it, organisations that share
// placements in pairs, and clients that write, read, erase, place holds and verify through the public
// interface while the process is killed and paused, backups are taken and restored, the clock steps and the
// disk is full. A checker checks every response. See docs/jepsen.md.
//
// npm run jepsen -- [--minutes 20] [--seed N] [--acts kills,pauses,backups,restores,clocks,years,disk]
// [--pairs 3] [--out FOLDER] [--root FOLDER]
//
// Acts for which there is no time left, on a slow machine, are left out. Prints each act and each violation
// when it happens, and a line of JSON at the end. Ends with 1 where a promise was broken, with 2 for invalid
// arguments.

import { once } from 'node:events'
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { provenance } from '../../bench/provenance.ts'
import { Client, Traffic, timelineBefore } from './clients.ts'
import { createOrganisations } from './create-organisations.ts'
import { checkFinally } from './final-check.ts'
import { makeSmallDisk, type SmallDisk, SteppedClock } from './machine-faults.ts'
import { Nemesis } from './nemesis.ts'
import { NumberedRows } from './numbered-rows.ts'
import { PublicCalls } from './public-calls.ts'
import { Recorder } from './recorder.ts'
import { drawSchedule, type Group, groups } from './schedule.ts'
import { ServiceProcess } from './service-process.ts'

const { values: flags } = parseArgs({
  options: {
    minutes: { type: 'string', default: '20' },
    seed: { type: 'string', default: String(Math.floor(performance.timeOrigin) % 1_000_000) },
    acts: { type: 'string', default: groups.join(',') },
    pairs: { type: 'string', default: '3' },
    out: { type: 'string' },
    root: { type: 'string', default: tmpdir() },
  },
})
const say = (line: string) => process.stdout.write(`${line}\n`)
const wanted = flags.acts === 'none' ? [] : flags.acts.split(',')
const unknown = wanted.filter((name) => !groups.some((group) => group === name))
const [minutes, seed, pairs] = [Number(flags.minutes), Number(flags.seed), Number(flags.pairs)]
if (unknown.length > 0 || !(minutes > 0) || !Number.isInteger(seed) || !(pairs >= 1 && pairs <= 20)) {
  process.stderr.write(
    `--acts knows ${groups.join(', ')} and none; --minutes is above 0, --seed an integer, --pairs from 1 to 20.\n`,
  )
  process.exit(2)
}

/**
 * The small disk must have room for all telemetry of a run twice, because a restore builds the new data
 * beside the old.
 */
const diskBytes = 1536 * 2 ** 20

const outFolder = resolve(flags.out ?? mkdtempSync(join(flags.root, 'lethe-jepsen-')))
mkdirSync(outFolder, { recursive: true })
const place = mkdtempSync(join(flags.root, 'lethe-jepsen-data-'))
const recorder = new Recorder(join(outFolder, 'history.ndjson'), say)

const clock = new SteppedClock(place)
const small = makeSmallDisk(flags.root, diskBytes)
const disk: SmallDisk | null = typeof small === 'string' ? null : small
const cannot: string[] = []
if (typeof small === 'string') cannot.push(`disk: ${small}`)
const chosen = groups.filter(
  (group): group is Group => wanted.includes(group) && !(disk === null && group === 'disk'),
)

const schedule = drawSchedule(seed, minutes, chosen)
say(
  JSON.stringify({
    jepsen: 'begins',
    ...provenance(),
    seed,
    minutes,
    pairs,
    acts: chosen,
    cannot,
    out: outFolder,
  }),
)
for (const sentence of cannot) say(`Not possible on this machine: ${sentence}. The run continues without it.`)
writeFileSync(join(outFolder, 'schedule.json'), `${JSON.stringify(schedule, null, 1)}\n`)

const home = disk?.folder ?? join(place, 'disk')
mkdirSync(home, { recursive: true })
const port = await freePort()
const address = `http://127.0.0.1:${port}`
const [dataDir, backupDir, logPath] = [join(home, 'data'), join(place, 'backups'), join(home, 'service.log')]
const env = {
  LETHE_PORT: String(port),
  LETHE_GRPC_PORT: 'off',
  LETHE_DATA_DIR: dataDir,
  LETHE_BACKUP_DIR: backupDir,
  LETHE_ENGINE_MEMORY_MB: '1024',
  ...clock.env,
}
const traffic = new Traffic()
const service = new ServiceProcess({
  address,
  env,
  logPath,
  onEnd: ({ code, signal, wasReady }) => {
    recorder.event({ f: 'process-ended' })
    traffic.isServed = false
    const all = ['disk', 'backup', 'start', 'clock', 'pause'] as const
    const under = all.filter((disturbance) => recorder.isUnder(disturbance)).join(', ') || 'undisturbed'
    const about = `${code ?? signal} (${under}): ${service.logTail()}`
    // On a full disk it may refuse to start, with the reason.
    if (!wasReady && recorder.isDuring('disk')) recorder.note(`the service does not start: ${about}`)
    else recorder.violate('the service ended by itself', about)
  },
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void leave(130))

let next = 0
/** The given minutes start here. */
let readyAtMs = 0
let isLeaving = false
const rows = new NumberedRows(seed)
const timeline = timelineBefore(Date.now())
const organisations = await createOrganisations(env, pairs).catch(async (error) => {
  tellBreak(error)
  await leave(1)
  throw error
})
const clients = organisations.map(
  (organisation) =>
    new Client(new PublicCalls(organisation, address, recorder, rows), {
      seed,
      recorder,
      traffic,
      timeline,
      backupDir,
      outFolder,
      nextRow: () => next++,
    }),
)
const nemesis = new Nemesis({
  service,
  clients,
  traffic,
  recorder,
  rows,
  env,
  dataDir,
  backupDir,
  clock,
  disk,
})

try {
  await nemesis.keepUp()
  readyAtMs = recorder.ms
  // Longer than the age of anything here: it erases nothing unless the service trusts a clock that is a year
  // ahead.
  if (wanted.includes('years')) for (const client of clients) await client.calls.setRetention(300)
  const living = clients.map((client) => client.live())
  for (const [done, act] of schedule.entries()) {
    await idleUntil(act.atS * 1000)
    if (recorder.ms - readyAtMs > minutes * 60_000) {
      recorder.note(`the time is over; ${schedule.length - done} of ${schedule.length} acts were left out`)
      break
    }
    await nemesis.perform(act)
  }
  await idleUntil(minutes * 60_000)
  traffic.isEnding = true
  await nemesis.heal()
  await Promise.all(living)
  await checkFinally({ nemesis, clients, recorder, clock, env, outFolder })
  if (!(await service.end('SIGTERM'))) recorder.violate('does not stop', service.logTail())
} catch (error) {
  tellBreak(error)
}
await leave(recorder.violations.length > 0 ? 1 : 0)

function tellBreak(error: unknown): void {
  const what = error instanceof Error ? (error.stack ?? error.message) : String(error)
  recorder.violate('the run was interrupted', what)
}

async function idleUntil(ms: number): Promise<void> {
  while (!isLeaving && recorder.ms - readyAtMs < ms) {
    await sleep(200)
    await nemesis.keepUp()
  }
}

/**
 * Removes everything that the run started: the process, the mounted disk, the folders. The first call counts.
 */
async function leave(code: number): Promise<void> {
  if (isLeaving) return
  isLeaving = true
  await service.end('SIGKILL')
  const kinds: Record<string, number> = {}
  for (const { kind } of recorder.violations) kinds[kind] = (kinds[kind] ?? 0) + 1
  const result = {
    jepsen: 'ends',
    seed,
    minutes,
    acts: chosen,
    cannot,
    seconds: Math.round(recorder.ms / 1000),
    counts: recorder.counts,
    violations: kinds,
    first: recorder.violations.slice(0, 10),
    out: outFolder,
  }
  writeFileSync(
    join(outFolder, 'result.json'),
    `${JSON.stringify({ ...result, all: recorder.violations }, null, 1)}\n`,
  )
  if (existsSync(logPath)) copyFileSync(logPath, join(outFolder, 'service.log'))
  if (recorder.violations.length > 0) {
    appendFileSync(
      join(outFolder, 'failing-seeds.ndjson'),
      `${JSON.stringify({ seed, minutes, pairs, acts: chosen, kinds })}\n`,
    )
    say(`The schedule of this seed: ${JSON.stringify(schedule)}`)
  }
  say(JSON.stringify(result))
  await recorder.close()
  disk?.remove()
  rmSync(place, { recursive: true, force: true })
  process.exit(code)
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  if (address === null || typeof address === 'string') throw new Error('No port is free.')
  return address.port
}
