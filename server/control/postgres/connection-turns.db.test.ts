// Connections of one handle between organisations: who waits for a lock, or asks for very much, leaves
// connections to others.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openSharedPostgresPlane } from '../../../tests/postgres-plane.ts'
import { runFolder } from '../../../tests/postgres-server.ts'
import { waitFor } from '../../../tests/wait-for.ts'
import { workFor } from '../../core/work-owner.ts'
import type { Control } from '../database.ts'
import { figuresOf, lock } from '../dialect.ts'
import { transact } from '../transaction.ts'
import { defaultLimits, openPostgres } from './postgres.ts'

const plane = await openSharedPostgresPlane()
const opened: Control[] = []
const openWith = (limits: Partial<typeof defaultLimits>) => {
  const server = { host: runFolder(), user: 'lethe', database: plane.database }
  const control = openPostgres(server, { ...defaultLimits, ...limits })
  opened.push(control)
  return control
}
after(async () => {
  for (const control of opened) await control.destroy()
  await plane.close()
})

const put = (control: Control, key: string) =>
  control.insertInto('instance').values({ key, value: '' }).execute()

const write = (control: Control, tenantId: string, key: string) =>
  workFor(tenantId, () =>
    transact(control, async (trx) => {
      await lock(trx, { tenantId })
      await put(trx, key)
    }),
  )

test('fifty writes of an organisation that wait for its lock leave connections to its neighbours and to the service', async () => {
  const control = openWith({ connectMs: 60_000, lockMs: 60_000, connections: 12 })
  const writes = await transact(plane.another(), async (trx) => {
    await lock(trx, { tenantId: 'acme' })
    const begun = Array.from({ length: 50 }, (_, at) => write(control, 'acme', `acme ${at}`))
    await waitFor(
      async () => figuresOf(control).connections.waiting,
      (waiting) => waiting > 0,
    )
    await Promise.all(Array.from({ length: 12 }, (_, at) => write(control, 'globex', `globex ${at}`)))
    await put(control, 'service')
    return begun
  })
  await Promise.all(writes)
  const stored = await control.selectFrom('instance').select('key').execute()
  assert.equal(stored.filter(({ key }) => key.startsWith('acme')).length, 50)
})

test('the service finds a connection while many organisations use as many as they may', async () => {
  const control = openWith({ connectMs: 60_000, lockMs: 60_000, connections: 6 })
  const tenants = ['acme', 'globex', 'initech', 'umbrella']
  const writes = await transact(plane.another(), async (trx) => {
    await lock(trx, 'organisations')
    const begun = tenants.flatMap((tenant) =>
      [1, 2, 3].map((at) => write(control, tenant, `${tenant} of ${at}`)),
    )
    await waitFor(
      async () => figuresOf(control).connections.waiting,
      (waiting) => waiting > 0,
    )
    await Promise.all([1, 2, 3].map((at) => put(control, `service ${at}`)))
    return begun
  })
  await Promise.all(writes)
})

test('a statement that finds no connection in time is refused as busy, and the next one is not', async () => {
  const control = openWith({ connectMs: 50, connections: 1 })
  const failures = figuresOf(control).failures.busy
  await transact(control, async () => {
    await assert.rejects(put(control, 'late'), { code: 'overloaded', status: 503, retryAfterSeconds: 1 })
  })
  assert.equal(figuresOf(control).failures.busy, failures + 1)
  await put(control, 'late')
})
