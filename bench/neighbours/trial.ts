// One attack beside the honest organisation, on its own service and data folder: first without the attack,
// then with it, then until charts are quick again.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { setPriority } from 'node:os'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Attack } from './attack.ts'
import type { AttackReport, Begun, ChildOrders } from './attacker-child.ts'
import { type AttackEffect, barMs, latenciesBetween, recoveredSinceMs, refusalsSince } from './bars.ts'
import { Honest } from './honest.ts'
import type { Body } from './rows.ts'
import type { Service } from './service.ts'
import { startCopy, type World } from './world.ts'

export interface Pace {
  readonly bodies: readonly Body[]
  readonly bodiesPerSecond: number
  readonly calmSeconds: number
  readonly attackSeconds: number
  /** Erases without a pause instead of once a minute, for an erased p99 of more than one sample. */
  readonly keepsErasing: boolean
}

export interface TrialResult extends AttackEffect {
  readonly does: string
  /** CPU during the attack. */
  readonly cpuSeconds: { readonly service: number; readonly attacker: number | null }
  /** What the attacker received, during its preparation and during the attack. */
  readonly prepared: Readonly<Record<string, number>>
  readonly answers: Readonly<Record<string, number>>
  /** The end of the output of a service that died. */
  readonly lastWords: string | null
}

/** Until a service that has just started has compiled its code. */
const warmUpMs = 2000

/** Number of quick charts in a row that count as recovery. */
const quickCharts = 8
const recoveryChartMs = 250
const recoveryLimitMs = 30_000

/** Time after the start of a phase; one erasure a minute. */
const firstErasureMs = 1000
const erasureEveryMs = 60_000

/**
 * The attacker's own computing would be on another machine. At a low priority it uses only what the service
 * leaves, so it affects the service only by what it sends.
 */
const attackerNice = 10

/** For preparations such as hundreds of megabytes of telemetry. */
const prepareLimitMs = 60_000

export async function runTrial(
  world: World,
  folder: string,
  attack: Attack,
  pace: Pace,
): Promise<TrialResult> {
  const service = await startCopy(world, folder)
  const honest = new Honest(world, service)
  try {
    honest.begin(pace.bodies, pace.bodiesPerSecond)
    await sleep(warmUpMs)
    const calmMs = performance.now()
    await Promise.all([calmWork(honest, pace), sleep(pace.calmSeconds * 1000)])
    const calmEndMs = performance.now()
    return await attackAndRecover({ world, service, honest, attack, pace, calmMs, calmEndMs })
  } finally {
    await honest.stop()
    await service.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Scene {
  readonly world: World
  readonly service: Service
  readonly honest: Honest
  readonly attack: Attack
  readonly pace: Pace
  readonly calmMs: number
  readonly calmEndMs: number
}

async function attackAndRecover(scene: Scene): Promise<TrialResult> {
  const { world, service, honest, attack, pace } = scene
  const preparedMs = performance.now()
  const attacker = startAttacker(world, service, attack, pace.attackSeconds)
  const { prepared } = await attacker.begun
  const beginMs = performance.now()
  const cpuBefore = service.cpuSeconds
  const work = workOf(honest, pace)
  const report = await attacker.ended
  const endMs = performance.now()
  const serviceCpu = service.cpuSeconds - cpuBefore
  const calm = latenciesBetween(honest.samples, scene.calmMs, scene.calmEndMs)
  const recoverySeconds = await untilWell(honest, endMs, barMs(calm.chart.p99Ms))
  await work
  await honest.stop()
  return {
    attack: attack.name,
    does: attack.does,
    calm,
    attacked: latenciesBetween(honest.samples, beginMs, endMs),
    refusals: refusalsSince(honest.samples, preparedMs),
    peakMb: service.peakMb,
    hasDied: service.hasDied,
    recoverySeconds,
    cpuSeconds: { service: Math.round(serviceCpu * 100) / 100, attacker: report?.cpuSeconds ?? null },
    prepared,
    answers: report?.tally ?? {},
    lastWords: service.hasDied ? service.lastWords : null,
  }
}

/**
 * A detector, and two erasures one after the other, because the first of a service that has just started is
 * the quickest.
 */
async function calmWork(honest: Honest, pace: Pace): Promise<void> {
  const untilMs = performance.now() + pace.calmSeconds * 1000
  await sleep(firstErasureMs)
  const erasures = pace.keepsErasing ? eraseUntil(honest, untilMs) : honest.erase().then(() => honest.erase())
  await Promise.all([erasures, honest.detect()])
}

/** An erasure each minute, and beside each a due detector. Resolves when all of them are done. */
async function workOf(honest: Honest, pace: Pace): Promise<void> {
  const forMs = pace.attackSeconds * 1000
  const untilMs = performance.now() + forMs
  const running: Promise<void>[] = []
  await sleep(Math.min(firstErasureMs, forMs / 4))
  if (pace.keepsErasing) return void (await Promise.all([eraseUntil(honest, untilMs), honest.detect()]))
  for (let restMs = forMs; restMs > 0; restMs = untilMs - performance.now()) {
    running.push(honest.erase(), honest.detect())
    if (restMs <= erasureEveryMs) break
    await sleep(erasureEveryMs)
  }
  await Promise.all(running)
}

async function eraseUntil(honest: Honest, untilMs: number): Promise<void> {
  while (performance.now() < untilMs) await honest.erase()
}

async function untilWell(honest: Honest, endMs: number, bar: number): Promise<number | null> {
  honest.chartEveryMs = recoveryChartMs
  while (performance.now() - endMs < recoveryLimitMs) {
    await sleep(100)
    // A chart that was requested during the attack counts if its response comes after it.
    const charts = honest.samples.filter(
      ({ activity, sentMs, ms }) => activity === 'chart' && sentMs + ms >= endMs,
    )
    const sinceMs = recoveredSinceMs(charts, bar, quickCharts)
    if (sinceMs !== null) return Math.round(Math.max(0, sinceMs - endMs) / 100) / 10
  }
  return null
}

interface RunningAttacker {
  readonly begun: Promise<Begun>
  /** Null where it had to be killed. */
  readonly ended: Promise<AttackReport | null>
}

function startAttacker(world: World, service: Service, attack: Attack, seconds: number): RunningAttacker {
  const program = fileURLToPath(new URL('attacker-child.ts', import.meta.url))
  const flags = ['--disable-warning=ExperimentalWarning']
  const child = spawn(process.execPath, [...flags, program], { stdio: ['pipe', 'pipe', 'inherit'] })
  const { host, port, grpcPort } = service
  const { accomplices, attacker } = world
  const orders: ChildOrders = { ...attacker, attack: attack.name, accomplices, host, port, grpcPort, seconds }
  if (child.pid !== undefined) setPriority(child.pid, attackerNice)
  child.stdin.end(JSON.stringify(orders))
  const lines: (Begun | AttackReport)[] = []
  const begun = new Promise<Begun>((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const said = JSON.parse(line) as Begun | AttackReport
      lines.push(said)
      if ('begun' in said) resolve(said)
    })
    // If the preparation takes too long, the attack begins with what was prepared by then.
    const nothing: Begun = { begun: true, prepared: {} }
    child.once('exit', () => resolve(nothing))
    setTimeout(() => resolve(nothing), prepareLimitMs).unref()
  })
  return { begun, ended: begun.then(() => endOf(child, seconds, lines)) }
}

async function endOf(
  child: ChildProcess,
  seconds: number,
  lines: readonly (Begun | AttackReport)[],
): Promise<AttackReport | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = once(child, 'exit')
    await Promise.race([ended, sleep(seconds * 1000 + 5000, null, { ref: false })])
    child.kill('SIGKILL')
    await ended
  }
  return lines.find((line): line is AttackReport => 'tally' in line) ?? null
}
