// The two append-only records in a real database file: what is written never changes, for any writer, and two
// writers at once make one chain.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { openSharedControlPlane } from '../../tests/control-planes.ts'
import type { Control } from '../control/database.ts'
import { lock } from '../control/dialect.ts'
import { tokenActor } from '../core/actor.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import { findBreak } from './chain.ts'
import { type AuditEvent, appendAudit, appendLedger, readChain } from './log.ts'

const { another, control, close, waitAtMost } = await openSharedControlPlane()
after(close)

const atMs = 1_763_717_400_000
let organisations = 0
const newTenant = () => `tenant-${++organisations}`

const event = (action: string): AuditEvent => ({
  actor: tokenActor('tok_1', 'ci'),
  action,
  target: 'thing',
  outcome: 'accepted',
  facts: { count: 1 },
})

async function append(
  tenantId: string,
  actions: readonly string[],
  through: Control = control,
): Promise<void> {
  for (const action of actions) {
    await through.transaction().execute((trx) => appendAudit(trx, tenantId, atMs, event(action)))
  }
}

const actionsOf = async (tenantId: string) =>
  (await readChain(control, 'audit_entries', tenantId)).map(({ text }) => JSON.parse(text).action)

test('entries are kept in order, numbered from 1, and their chain is consistent', async () => {
  const tenantId = newTenant()
  await append(tenantId, ['a', 'b', 'c'])
  const chain = await readChain(control, 'audit_entries', tenantId)
  assert.equal(findBreak(chain), null)
  assert.deepEqual(
    chain.map(({ text }) => {
      const { seq, action, at, tenant_id } = JSON.parse(text)
      return [seq, action, at, tenant_id]
    }),
    ['a', 'b', 'c'].map((action, i) => [i + 1, action, '2025-11-21T09:30:00.000Z', tenantId]),
  )
})

test('each organisation has its own chains, and audit log and ledger are separate', async () => {
  const [one, other] = [newTenant(), newTenant()]
  await append(one, ['a', 'b'])
  await append(other, ['c'])
  const ledgerEvent = {
    request_id: 'del_1',
    actor: tokenNamed('x'),
    from_status: null,
    to_status: 'running',
    facts: {},
  }
  const seq = await control.transaction().execute((trx) => appendLedger(trx, one, atMs, ledgerEvent))
  assert.equal(seq, 1)
  assert.deepEqual([await actionsOf(one), await actionsOf(other)], [['a', 'b'], ['c']])
  const [entry] = await readChain(control, 'ledger_entries', one)
  assert.equal(JSON.parse(entry?.text ?? '{}').kind, 'data_deletion_request')
  for (const table of ['audit_entries', 'ledger_entries'] as const) {
    for (const tenantId of [one, other])
      assert.equal(findBreak(await readChain(control, table, tenantId)), null)
  }
})

test('the database itself refuses to change or remove an entry', async () => {
  const tenantId = newTenant()
  await append(tenantId, ['a'])
  const ledgerEvent = {
    request_id: 'del_1',
    actor: tokenNamed('x'),
    from_status: null,
    to_status: 'running',
    facts: {},
  }
  await control.transaction().execute((trx) => appendLedger(trx, tenantId, atMs, ledgerEvent))
  for (const table of ['audit_entries', 'ledger_entries'] as const) {
    const before = await readChain(control, table, tenantId)
    assert.equal(before.length, 1)
    for (const statement of [
      `update ${table} set entry = '{}' where tenant_id = '${tenantId}'`,
      `update ${table} set seq = seq + 1`,
      `delete from ${table} where tenant_id = '${tenantId}'`,
      `delete from ${table}`,
      `insert into ${table} select tenant_id, seq, '{}', hash from ${table} where tenant_id = '${tenantId}' on conflict do update set entry = '{}'`,
    ]) {
      await assert.rejects(sql.raw(statement).execute(control), statement)
    }
    assert.deepEqual(await readChain(control, table, tenantId), before)
  }
})

test('an entry is committed or rolled back with its transaction', async () => {
  const tenantId = newTenant()
  const failing = control.transaction().execute(async (trx) => {
    await appendAudit(trx, tenantId, atMs, event('undone'))
    throw new Error('The change failed.')
  })
  await assert.rejects(failing, /The change failed/)
  await append(tenantId, ['done'])
  assert.deepEqual(await actionsOf(tenantId), ['done'])
  assert.equal(findBreak(await readChain(control, 'audit_entries', tenantId)), null)
})

test('many appends at once through one handle make one chain', async () => {
  const tenantId = newTenant()
  await Promise.all(Array.from({ length: 20 }, (_, i) => append(tenantId, [`${i}`])))
  const chain = await readChain(control, 'audit_entries', tenantId)
  assert.equal(chain.length, 20)
  assert.equal(findBreak(chain), null)
})

test('a second handle can’t append between the read and the write of the first', async () => {
  const tenantId = newTenant()
  await append(tenantId, ['a'])
  const second = another()
  await waitAtMost(second, 0)
  await control.transaction().execute(async (trx) => {
    await lock(trx, { tenantId })
    await trx.selectFrom('audit_entries').select('seq').where('tenant_id', '=', tenantId).execute()
    // The first transaction has only read so far; a second one must already wait, or fail where it may not
    // wait.
    await assert.rejects(append(tenantId, ['between'], second), { code: 'overloaded' })
    await appendAudit(trx, tenantId, atMs, event('b'))
  })
  await append(tenantId, ['c'], second)
  assert.deepEqual(await actionsOf(tenantId), ['a', 'b', 'c'])
  assert.equal(findBreak(await readChain(control, 'audit_entries', tenantId)), null)
})
