// Backups and restores in a simulation. A restore brings rows back that were erased since, and may bring back a
// control plane that has never heard of it; before anybody is answered they are gone again. What arrived since the
// backup is lost, and nobody ever promised otherwise.

import assert from 'node:assert/strict'
import type { Arrival, Request } from './model.ts'
import type { Saved, World } from './world.ts'

const keptMax = 2

export async function backUp(world: World): Promise<void> {
  world.tell('a backup')
  const folder = await world.subject.backUp()
  if (folder === null) {
    // Between a copy of survivors and its swap nothing can be copied.
    assert.ok([...world.model.requests.values()].some(({ status }) => status === 'incomplete'))
    return
  }
  world.backups.push({ folder, snapshot: world.model.snapshot(), rules: new Map(world.rules) })
  if (world.backups.length > keptMax) world.backups.shift()
}

export async function restore(world: World): Promise<void> {
  if (world.backups.length === 0) return
  const saved = world.pick(world.backups)
  const isControlReplaced = world.chance(0.4)
  world.tell(`a restore, ${isControlReplaced ? 'with its control plane' : 'of telemetry alone'}`)
  world.counts.restores++
  world.touchAll()
  world.closed.clear()
  if (isControlReplaced) putBackControl(world, saved)
  // Anomalies are the control plane's.
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
  await world.subject.restore(saved.folder, isControlReplaced)
  await world.check('any move')
  for (const id of world.begun.keys()) {
    const status = world.model.requests.get(id)?.status
    const isTakenUp = ['completed', 'running', 'incomplete', 'held', 'failed'].includes(status ?? '')
    assert.ok(isTakenUp, `${id} had begun to erase and is ${status} after a restore`)
  }
}

/** What the backup's control plane knows, and what the journal adds to it. */
function putBackControl(world: World, { rules, snapshot }: Saved): void {
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
