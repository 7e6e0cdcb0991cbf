// The clock of a simulated machine: it is set by seconds or by years, or confirmed; and what must be true
// then. Nothing erases by a date while the clock is in doubt, a backup is removed when it expires and not
// before, and which backups have what an erasure erased depends only on the order of events, not on dates.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { confirmClock } from '../../server/worker/clock-watch.ts'
import { assertAnswer, type World } from './world.ts'

const secondMs = 1000
const hourMs = 3600 * secondMs
const dayMs = 24 * hourMs

/** A pass begins: the service checks the clock, and removes expired backups. */
export function beginPass({ subject, time }: World): void {
  time.look()
  time.expire(subject.nowMs())
}

const jumpsMs = [2 * secondMs, 2 * secondMs, hourMs, 20 * hourMs, 30 * hourMs, 12 * dayMs, 400 * dayMs]

/** The clock is set, forwards or back; when it is far off, it is mostly set right. */
export async function setClock(world: World): Promise<void> {
  const { subject, time } = world
  const isFar = Math.abs(time.setMs) > 20 * dayMs
  const byMs = isFar ? -time.setMs : world.pick(jumpsMs) * world.pick([1, -1])
  world.log(`the clock is set by ${byMs / secondMs} seconds`)
  await subject.setClock(byMs)
  time.set(byMs)
}

/** The operator confirms a clock in doubt; then `pass` follows, which uses it. */
export async function confirm(world: World, pass: (world: World) => Promise<void>): Promise<void> {
  const { subject, time } = world
  if (!time.state.isInDoubt) return
  world.log('the operator confirms the clock')
  await confirmClock(subject.control, subject.nowMs())
  time.confirm()
  await pass(world)
}

/**
 * Backups exist as long as they must, and the certificate of an erasure names every backup from before it and
 * none from after it.
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
  world.log(`the certificate of ${id} names ${[...named].join(', ') || 'no backup'}`)
  for (const { folder } of before)
    assert.ok(named.has(nameOf(folder)), `${nameOf(folder)} has ${id} and is not named`)
  const clearByMs = Date.parse(request.body.backups_clear_by ?? '1970-01-01T00:00:00Z')
  const dueMs = Math.max(0, ...before.map(({ expiresAtMs }) => expiresAtMs))
  assert.ok(clearByMs >= dueMs, `${id} is clear of backups by ${request.body.backups_clear_by}`)
  if (again.has(id)) return
  for (const { done, folder } of taken)
    assert.ok(!done.has(id) || !named.has(nameOf(folder)), `${nameOf(folder)} has nothing of ${id}`)
  assert.equal(clearByMs, dueMs, `${id} is clear of backups by ${request.body.backups_clear_by}`)
}

const idOf = ({ backup_id }: { backup_id: string }) => backup_id
const nameOf = (folder: string) => folder.split('/').at(-1) ?? ''

/** Backups are on the disk until they expire, and no longer. */
export function assertBackups({ time }: World): void {
  const due = new Set(time.taken.map(({ folder }) => folder))
  for (const folder of time.ever) {
    assert.equal(existsSync(folder), due.has(folder), `${nameOf(folder)} on the disk`)
  }
}
