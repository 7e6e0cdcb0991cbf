// Who may act in an organisation at the moment of its transaction. tests/scenario/held-back.db.test.ts has
// the same from the side of a client, for every act.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { TestControl } from '../../tests/control-plane.ts'
import { openControlPlane } from '../../tests/control-planes.ts'
import { readChain } from '../audit/log.ts'
import { type Actor, operatorActor, systemActor } from '../core/actor.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { LegalHolds } from '../deletion/governance/holds.ts'
import { DeletionPolicies } from '../deletion/governance/policy.ts'
import { findRelated } from '../tenancy/lineage.ts'
import { TenancyStore } from '../tenancy/store.ts'
import { QuotaStore } from '../usage/quota-store.ts'
import { lockForAct } from './acting.ts'

const clock = new ManualClock(1_763_717_400_000)
const operator = operatorActor('test')
let plane: TestControl
before(async () => {
  plane = await openControlPlane()
  const organisation = { tenantId: 'acme', name: 'Acme', actor: operator }
  await new TenancyStore(plane.control, clock).createOrganisation(organisation, async () => {})
})
after(() => plane.close())

const locked = (tenantId: string, actor: Actor) =>
  plane.control.transaction().execute((trx) => lockForAct(trx, { tenantId, actor }, clock.nowMs()))

const auditOf = async (tenantId: string) =>
  (await readChain(plane.control, 'audit_entries', tenantId)).map(({ text }) => JSON.parse(text).action)

test('the operator acts in an organisation that exists, and writes nothing of one that was removed', async () => {
  const { control } = plane
  const holds = new LegalHolds(control, clock, findRelated)
  const policies = new DeletionPolicies(control, clock)
  const acts = (tenantId: string) => [
    () => holds.place(tenantId, { case_ref: 'x' }, operator),
    () => policies.set(tenantId, 'every_deletion', operator),
    () => quotas(tenantId),
  ]
  const quotas = (tenantId: string) => quotaStore.setLimits(tenantId, { rowsPerSecond: 10 }, operator)
  const quotaStore = new QuotaStore(control, clock, { rowsPerSecond: null, bytesPerDay: null })
  for (const act of acts('removed')) await assert.rejects(act(), { code: 'not_found' })
  assert.deepEqual(await auditOf('removed'), [])
  for (const act of acts('acme')) await act()
  assert.deepEqual(await auditOf('acme'), [
    'organisation.created',
    'legal_hold.placed',
    'deletion_policy.changed',
    'quota.changed',
  ])
})

test('the system still acts in a removed organisation, whose telemetry a restore may bring back', async () => {
  await locked('removed', systemActor('deletion'))
  await assert.rejects(locked('removed', operator), { code: 'not_found' })
})
