// Actions of the machine in a simulation: a pass of the deletion loop, undisturbed or with a fault at a named
// point, the end of the process during it, time that passes, starts, backups and restores.

import assert from 'node:assert/strict'
import { systemClock } from '../../server/core/clock.ts'
import { assertBackups, beginPass, confirm } from './clocks.ts'
import { fencing, type Request } from './model.ts'
import { ask, decide, hold, verify } from './people.ts'
import { predictPass } from './prediction.ts'
import { send } from './programs.ts'
import type { Fault } from './subject.ts'
import type { World } from './world.ts'

/** Every named point of an erasure, including those inside the lock of a placement. */
const points = [
  'fenced',
  'planned',
  'survivors copied ahead',
  'before partition step',
  'partition dropped',
  'survivors copied',
  'swap promised',
  'partition replaced',
  'step recorded',
  'anomalies removed',
  'removed from disk',
  'before read-back',
  'marked done',
] as const

const minuteMs = 60_000

/** One pass; every second one is disturbed where there is something to disturb. */
export async function pass(world: World): Promise<void> {
  const fault = world.chance(0.6) ? randomFault(world) : null
  if (fault !== null) await giveWork(world)
  await passWith(world, fault)
}

/** Mostly creates something to erase and a request for it, because a fault needs one to occur. */
async function giveWork(world: World): Promise<void> {
  // A failed request waits for its next attempt, and all later ones of its organisation wait behind it.
  if (world.chance(0.8)) await world.subject.advance(10 * minuteMs)
  for (let tries = 0; tries < 5; tries++) {
    const isAtWork = [...world.model.requests.values()].some(({ status }) => status === 'running')
    if (isAtWork) return
    await send(world)
    await ask(world)
    await world.subject.advance(1)
    await world.check()
  }
}

/** One pass in which the process is killed, at every second of the named points in turn, then at the rest. */
export async function killedPass(world: World): Promise<void> {
  const point = points[(2 * world.kills++) % points.length] ?? world.pick(points)
  const occurrence = world.chance(0.7) ? 1 : 1 + Math.floor(world.random() * 6)
  await giveWork(world)
  await passWith(world, { point, occurrence, how: 'stand' }, 'crash')
}

function randomFault(world: World): Fault {
  return {
    ...(world.chance(0.6)
      ? { point: 'any', occurrence: 1 + Math.floor(world.random() * 15) }
      : { point: world.pick(points), occurrence: 1 }),
    how: world.chance(0.3) ? 'throw' : 'stand',
  }
}

export async function passWithoutFault(world: World): Promise<void> {
  await passWith(world, null)
}

type End = 'continue' | 'throw' | 'crash'

async function passWith(world: World, fault: Fault | null, end: End | null = null): Promise<void> {
  const { model, subject } = world
  world.touchAll()
  world.log(
    `a pass, ${fault === null ? 'undisturbed' : `${fault.how} at "${fault.point}" (${fault.occurrence})`}`,
  )
  beginPass(world)
  const dueMs = world.time.dueMs(subject.nowMs())
  const known = {
    model,
    asksApproval: (request: Request) => world.asksApproval(request),
    withdraws: await world.withdrawals(),
  }
  const predicted = predictPass(known, subject.nowMs(), dueMs)
  model.exposeToAttempts(dueMs)
  world.closed.clear()
  world.cutOff.clear()
  const came = await subject.round(fault)
  if (came === 'standing') return stand(world, end)
  const at = subject.faultedAt()
  if (at === null) {
    // Waits during the pass let time pass, and a request may have become due meanwhile.
    const laterMs = world.time.dueMs(subject.nowMs())
    model.exposeToAttempts(laterMs)
    return world.check(predicted, predictPass(known, subject.nowMs(), laterMs))
  }
  world.counts.faults++
  await world.check('any move')
  if (at === 'swap promised') await closePromised(world)
}

async function stand(world: World, end: End | null): Promise<void> {
  world.counts.faults++
  world.isStanding = true
  const at = world.subject.faultedAt()
  world.log(`it is paused at "${at}"`)
  await world.check('any move')
  for (let act = Math.floor(world.random() * 4); act > 0; act--) {
    await actBeside(world, at)
    await world.check()
  }
  world.isStanding = false
  world.touchAll()
  const how = end ?? world.pick(['continue', 'continue', 'throw', 'crash'] as const)
  world.log(`then it ${how === 'crash' ? 'crashes' : `continues with ${how}`}`)
  if (how === 'crash') return crash(world)
  world.model.exposeToAttempts(world.subject.nowMs())
  await world.subject.resume(how)
  await world.settleWaiting()
  await world.check('any move')
  if (how === 'throw' && at === 'swap promised') await closePromised(world)
}

/** An action while the erasure is paused. */
async function actBeside(world: World, at: string | null): Promise<void> {
  const act = world.pick(['send', 'send', 'ask', 'decide', 'hold', 'verify'] as const)
  if (act === 'send') return send(world)
  if (act === 'ask') return ask(world)
  if (act === 'decide') return decide(world)
  if (act === 'verify') return verify(world)
  // After the last count a hold comes too late, and both results are right.
  if (at !== 'marked done') return hold(world)
}

/**
 * The placement of a swap that was promised and not made stays closed until an attempt makes it, in this pass
 * or later.
 */
async function closePromised(world: World): Promise<void> {
  for (const name of await world.subject.remains()) {
    const [, placement] = /^erasure_swap_(\d+)_/.exec(name) ?? []
    if (placement !== undefined) world.closed.add(Number(placement))
  }
  if (world.chance(0.5)) {
    await hold(world)
    await world.check()
  }
}

export async function crash(world: World): Promise<void> {
  world.log('a crash')
  world.counts.crashes++
  world.touchAll()
  world.model.exposeToAttempts(world.subject.nowMs())
  await world.loseWaiting()
  for (const { id, status } of world.model.requests.values()) if (fencing.has(status)) world.cutOff.add(id)
  world.closed.clear()
  world.time.look()
  await world.subject.crash()
  await world.learnHolds()
  await world.check('any move')
}

export async function restart(world: World): Promise<void> {
  const { model, subject } = world
  world.log('a restart')
  world.touchAll()
  world.time.look()
  world.closed.clear()
  // What a restore brought back and was not erased yet has its next attempt before anything is answered.
  if ([...model.requests.values()].some(({ cameBack }) => cameBack)) {
    model.exposeToAttempts(subject.nowMs())
    await subject.restart()
    return world.check('any move')
  }
  await subject.restart()
  const expected = [...model.requests.values()].map(
    ({ attempts, forgiven, id, status }) =>
      [id, status === 'running' && attempts > forgiven ? 'incomplete' : status] as const,
  )
  await world.check(new Map(expected))
}

export async function wait(world: World): Promise<void> {
  const ms = world.pick([1, 1000, minuteMs, 10 * minuteMs, 360 * minuteMs, 1440 * minuteMs, 4320 * minuteMs])
  world.log(`${ms / 1000} seconds pass`)
  await world.subject.advance(ms)
}

/** Everything that can end by itself ends, and nothing is left of it. */
export async function finish(world: World): Promise<void> {
  const { model, subject } = world
  assert.ok(!world.isStanding)
  for (const one of model.holds.values()) {
    if (!one.isActive) continue
    const own = world.organisations.find(({ place }) => place.tenantId === one.tenantId)
    await subject.ask('POST', `/usage/storage/holds/${one.id}/release`, { secret: own?.secrets[0] ?? '' })
    model.holds.set(one.id, { ...one, isActive: false })
  }
  await confirm(world, passWithoutFault)
  // If a clock was ahead at the time of a request, its dates are as far ahead.
  const dates = [...model.requests.values()].map(({ approveByMs, startsAtMs }) =>
    Math.max(approveByMs ?? 0, startsAtMs ?? 0),
  )
  await subject.advance(Math.max(0, ...dates.map((dateMs) => dateMs - subject.nowMs())))
  for (let round = 0; round < 4; round++) {
    await subject.advance(40 * 1440 * minuteMs)
    await passWith(world, null)
  }
  const left = [...model.requests.values()].filter(
    ({ status }) => !['completed', 'failed', 'cancelled', 'rejected', 'expired'].includes(status),
  )
  assert.deepEqual(left, [], 'requests that did not come to an end')
  assertBackups(world)
  await world.checkWholeChains()
  for (let look = 0; ; look++) {
    const remains = await subject.remains()
    if (remains.length === 0) return
    assert.ok(look < 200, `still left: ${remains.join(', ')}`)
    await systemClock.sleep(50)
  }
}
