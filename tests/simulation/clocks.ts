// The clock of a simulated machine: somebody sets it by seconds or by years, or says that it is right; and
// what must hold of it. Nothing erases by a date while the clock is in doubt, a backup is removed when its
// time is over and not before, and which backups hold what an erasure erased is a matter of what was done
// first, whatever the dates say.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { confirmClock } from '../../server/worker/clock-watch.ts'
import { assertAnswer, type World } from './world.ts'

const secondMs = 1000
const hourMs = 3600 * secondMs
const dayMs = 24 * hourMs

/** A pass begins: the service looks at the clock, and removes what is over. */
export function beginPass({ subject, time }: World): void {
  time.look()
  time.expire(subject.nowMs())
}

const jumpsMs = [2 * secondMs, 2 * secondMs, hourMs, 20 * hourMs, 30 * hourMs, 12 * dayMs, 400 * dayMs]

/** Somebody sets the clock, forwards or back; from far away it is mostly set right. */
export async function setClock(world: World): Promise<void> {
  const { subject, time } = world
  const isFar = Math.abs(time.setMs) > 20 * dayMs
  const byMs = isFar ? -time.setMs : world.pick(jumpsMs) * world.pick([1, -1])
  world.tell(`the clock is set by ${byMs / secondMs} seconds`)
  await subject.setClock(byMs)
  time.set(byMs)
}

/** Somebody says that the clock is right, where it is in doubt; then `pass` follows, which acts by it. */
export async function confirm(world: World, pass: (world: World) => Promise<void>): Promise<void> {
  const { subject, time } = world
  if (!time.state.isInDoubt) return
  world.tell('somebody says that the clock is right')
  await confirmClock(subject.control, subject.nowMs())
  time.confirm()
  await pass(world)
}

/**
 * Backups are there as long as they must, and the certificate of an erasure names every backup from before
 * it and none from after it.
 */
export async function certify(world: World): Promise<void> {
  assertBackups(world)
  const completed = [...world.model.requests.values()].filter(({ status }) => status === 'completed')
  if (completed.length === 0) return
  const { id, tenantId } = world.pick(completed)
  const own = world.organisations.find(({ place }) => place.tenantId === tenantId)
  if (own === undefined) return
  const secret = own.secrets[0]
  const path = `/usage/storage/deletions/${id}`
  const request = await world.subject.ask('GET', path, { secret })
  assertAnswer(request, 200, 'a request')
  const issued = await world.subject.ask('GET', `${path}/certificate`, { secret })
  assertAnswer(issued, 200, 'a certificate')
  const named = new Set<string>(issued.body.certificate.backups.map(idOf))
  const { again, taken } = world.time
  const before = taken.filter(({ done }) => !done.has(id))
  world.tell(`the certificate of ${id} names ${[...named].join(', ') || 'no backup'}`)
  for (const { folder } of before)
    assert.ok(named.has(nameOf(folder)), `${nameOf(folder)} holds ${id} unsaid`)
  const clearByMs = Date.parse(request.body.backups_clear_by ?? '1970-01-01T00:00:00Z')
  const dueMs = Math.max(0, ...before.map(({ expiresAtMs }) => expiresAtMs))
  assert.ok(clearByMs >= dueMs, `${id} is clear of backups by ${request.body.backups_clear_by}`)
  if (again.has(id)) return
  for (const { done, folder } of taken)
    assert.ok(!done.has(id) || !named.has(nameOf(folder)), `${nameOf(folder)} holds nothing of ${id}`)
  assert.equal(clearByMs, dueMs, `${id} is clear of backups by ${request.body.backups_clear_by}`)
}

const idOf = ({ backup_id }: { backup_id: string }) => backup_id
const nameOf = (folder: string) => folder.split('/').at(-1) ?? ''

/** Backups are on the disk until their time is over, and no longer. */
export function assertBackups({ time }: World): void {
  const due = new Set(time.taken.map(({ folder }) => folder))
  for (const folder of time.ever) {
    assert.equal(existsSync(folder), due.has(folder), `${nameOf(folder)} on the disk`)
  }
}
