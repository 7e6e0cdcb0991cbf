// Backups and restores in a simulation. A restore brings back rows that were erased after the backup, and may
// bring back a control plane that doesn't know the erasure; they must be gone again before anything is
// answered. Rows that arrived after the backup are lost, as documented.

import assert from 'node:assert/strict'
import type { Arrival, Request } from './model.ts'
import type { Saved, World } from './world.ts'

const keptMax = 2

export async function backUp(world: World): Promise<void> {
  const keepDays = world.pick([10, 40, 3650])
  const { model, subject, time } = world
  time.look()
  const expiresAtMs = subject.nowMs() + keepDays * 86_400_000
  const { done } = model.snapshot()
  const folder = await subject.backUp(keepDays)
  world.log(`a backup for ${keepDays} days: ${folder?.split('/').at(-1) ?? 'failed'}`)
  if (folder !== null) time.keep({ folder, expiresAtMs, done })
  time.expire(subject.nowMs())
  if (folder === null) {
    // Between the copy of the remaining rows and its swap no backup is possible.
    assert.ok([...world.model.requests.values()].some(({ status }) => status === 'incomplete'))
    return
  }
  world.backups.push({ folder, snapshot: model.snapshot(), rules: new Map(world.rules), clock: time.state })
  if (world.backups.length > keptMax) world.backups.shift()
}

export async function restore(world: World): Promise<void> {
  const there = new Set(world.time.taken.map(({ folder }) => folder))
  const left = world.backups.filter(({ folder }) => there.has(folder))
  if (left.length === 0) return
  const saved = world.pick(left)
  const isControlReplaced = world.chance(0.4)
  world.log(`a restore, ${isControlReplaced ? 'with its control plane' : 'of telemetry alone'}`)
  world.counts.restores++
  world.touchAll()
  world.closed.clear()
  for (const { id } of [...world.model.requests.values(), ...world.begun.values()]) world.time.again.add(id)
  if (isControlReplaced) putBackControl(world, saved)
  // Anomalies are in the control plane.
  const isAnomaly = ({ table }: Arrival) => table === 'anomalies'
  world.model.arrivals = [
    ...saved.snapshot.arrivals.filter((row) => isControlReplaced || !isAnomaly(row)),
    ...(isControlReplaced ? [] : world.model.arrivals.filter(isAnomaly)),
  ]
  for (const [id, request] of world.model.requests) {
    if (request.status !== 'completed' || saved.snapshot.done.has(id)) continue
    world.model.requests.set(id, { ...request, status: 'running' })
  }
  world.model.exposeToAttempts(Number.MAX_SAFE_INTEGER)
  world.time.look()
  await world.subject.restore(saved.folder, isControlReplaced)
  await world.check('any move')
  for (const id of world.begun.keys()) {
    const status = world.model.requests.get(id)?.status
    const isTakenUp = ['completed', 'running', 'incomplete', 'held', 'failed'].includes(status ?? '')
    assert.ok(isTakenUp, `${id} had begun to erase and is ${status} after a restore`)
  }
}

/** What the backup's control plane knows, and what the journal adds to it. */
function putBackControl(world: World, { clock, rules, snapshot }: Saved): void {
  const { model } = world
  model.requests = new Map(snapshot.requests)
  model.holds = new Map(snapshot.holds)
  for (const [id, request] of world.begun) {
    const known = model.requests.get(id)
    if (known === undefined) model.requests.set(id, takenUp(request))
    else if (known.attempts === 0 && known.status !== 'completed') {
      model.requests.set(id, { ...known, status: 'running', cameBack: true })
    }
  }
  world.time.state = clock
  world.rules.clear()
  for (const [tenantId, rule] of rules) world.rules.set(tenantId, rule)
  world.forgetChains()
}

function takenUp(request: Request): Request {
  return {
    ...request,
    status: 'running',
    key: null,
    delayMinutes: 0,
    attempts: 0,
    forgiven: 0,
    crashes: 0,
    cameBack: true,
    retryAtMs: null,
    heldBy: [],
  }
}
