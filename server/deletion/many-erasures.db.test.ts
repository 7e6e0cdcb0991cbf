// An organisation may have completed a hundred thousand erasures, and ended as many tokens and legal holds.
// What a new one depends on is found by indexes without reading those. The plans of SQLite show it, which
// does not choose by the number of rows.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type KyselyPlugin, type RootOperationNode, sql } from 'kysely'
import { isOnPostgres, openControlPlane } from '../../tests/control-planes.ts'
import type { Control, ControlTransaction } from '../control/database.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { findRelated } from '../tenancy/lineage.ts'
import { OrganisationRemoval } from '../tenancy/removal.ts'
import { readTokenPage } from '../tenancy/token-list.ts'
import { readingOf } from '../worker/clock-watch.ts'
import { between } from './deletion-fixture.ts'
import { readActiveHolds, readHoldsSince } from './governance/active-holds.ts'
import { LegalHolds } from './governance/holds.ts'
import { DeletionPolicies } from './governance/policy.ts'
import { nothingErased } from './governance/remaining.ts'
import { secondPersonCause } from './governance/second-person.ts'
import {
  findExisting,
  refuseDuringFullErasure,
  refuseTooManyDeletions,
  refuseTooManyRefusing,
} from './requests/admission.ts'
import { RequestQueries } from './requests/queries.ts'
import { readKept } from './retention/kept.ts'

const { control, close } = await openControlPlane()
after(close)
const nowMs = 1_767_000_000_000

/** Returns how SQLite finds rows of a table in the statements of `work`, in their order. */
async function waysOf(
  work: (observed: Control) => Promise<unknown>,
  table = 'deletion_requests',
): Promise<string[]> {
  const nodes: RootOperationNode[] = []
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      nodes.push(node)
      return node
    },
    transformResult: async ({ result }) => result,
  }
  await work(control.withPlugin(plugin))
  const ways: string[] = []
  for (const node of nodes.filter(({ kind }) => kind === 'SelectQueryNode')) {
    const { parameters, sql: text } = control.getExecutor().compileQuery(node, { queryId: 'plan' })
    const values = text.split('?').map((part, i) => {
      return i < parameters.length ? sql`${sql.raw(part)}${parameters[i]}` : sql.raw(part)
    })
    const { rows } = await sql<{ detail: string }>`explain query plan ${sql.join(values, sql``)}`.execute(
      control,
    )
    const way = new RegExp(` ${table} USING (?:COVERING )?INDEX (.*)$`)
    ways.push(...rows.flatMap(({ detail }) => way.exec(detail)?.[1] ?? []))
  }
  return ways
}

const byStatus = 'deletion_requests_by_tenant_status (tenant_id=? AND status=?)'

test('a new request reads the requests that are not finished', { skip: isOnPostgres }, async () => {
  const within = (check: (trx: ControlTransaction) => Promise<unknown>) =>
    waysOf((observed) => observed.transaction().execute(check))
  const by = { requester: tokenNamed('owner'), idempotencyKey: null }
  const asker = { ...by, tenantId: 'acme' }
  assert.deepEqual(await within((trx) => findExisting(trx, 'acme', by, 'hash')), [byStatus])
  assert.deepEqual(await within((trx) => refuseTooManyDeletions(trx, findRelated, asker)), [byStatus])
  const draft = between(null, 5n)
  assert.deepEqual(await within((trx) => refuseDuringFullErasure(trx, 'acme', draft)), [byStatus])
  assert.deepEqual(await within((trx) => refuseTooManyRefusing(trx, findRelated, asker)), [
    'deletion_requests_refusing (tenant_id=?)',
  ])
})

test('a rule of a second person reads what is open and what was completed within a month', {
  skip: isOnPostgres,
}, async () => {
  await new DeletionPolicies(control, new ManualClock(nowMs)).set(
    'acme',
    'full_erasures',
    tokenNamed('owner'),
  )
  const asker = { tenantId: 'acme', requester: tokenNamed('owner') }
  const ways = await waysOf((observed) =>
    secondPersonCause(
      observed,
      findRelated,
      asker,
      between(0n, 5n),
      readingOf(new ManualClock(nowMs)),
      nothingErased,
    ),
  )
  const byEnd = 'deletion_requests_by_end (tenant_id=? AND finished_at_ms>?)'
  // The second part of a union is seen by itself too.
  assert.deepEqual(ways, [byStatus, byEnd, byEnd, byStatus, byEnd])
})

test('what retention keeps, and the lists of a status, read no other requests', {
  skip: isOnPostgres,
}, async () => {
  assert.deepEqual(await waysOf((observed) => readKept(observed, 'acme', nowMs)), [
    'deletion_requests_of_system (tenant_id=?)',
  ])
  const queriesOn = (observed: Control) =>
    new RequestQueries(observed, async () => ({ all: [], fromBefore: () => [] }))
  const page = { limit: 10, beforeId: 'del_5', status: 'held' } as const
  assert.deepEqual(await waysOf((observed) => queriesOn(observed).list('acme', page)), [
    'deletion_requests_by_tenant_status (tenant_id=? AND status=? AND request_id<?)',
  ])
  assert.deepEqual(await waysOf((observed) => queriesOn(observed).inStatus(['running'], 'acme')), [byStatus])
})

test('the removal of an organisation reads what is not finished and the newest full erasure', {
  skip: isOnPostgres,
}, async () => {
  await control
    .insertInto('organisations')
    .values({ tenant_id: 'acme', name: 'Acme', placement: 1, created_at_ms: 0 })
    .execute()
  const never = async () => assert.fail('it is not removable')
  const removalOn = (observed: Control) =>
    new OrganisationRemoval({
      control: observed,
      clock: new ManualClock(nowMs),
      isGuarded: async () => false,
      isClockInDoubt: async () => false,
      closeToWriters: never,
      forgetSenders: never,
      countTelemetry: never,
      flushControl: never,
      signCheckpoint: never,
    })
  const ways = await waysOf((observed) =>
    assert.rejects(removalOn(observed).remove('acme', tokenNamed('owner')), /No erasure of all/),
  )
  assert.deepEqual(ways, [byStatus, 'deletion_requests_full (tenant_id=? AND signals=?)'])
})

test('legal holds in force, and those that were released lately, are found without the others', {
  skip: isOnPostgres,
}, async () => {
  const inForce = 'legal_holds_by_release (tenant_id=? AND released_at_ms=?)'
  const ways = (work: (observed: Control) => Promise<unknown>) => waysOf(work, 'legal_holds')
  assert.deepEqual(await ways((observed) => readActiveHolds(observed, 'acme')), [inForce])
  const holdsOn = (observed: Control) => new LegalHolds(observed, new ManualClock(nowMs), findRelated)
  const page = { limit: 10, beforeId: null, isActive: true }
  assert.deepEqual(await ways((observed) => holdsOn(observed).list('acme', page)), [inForce])
  const since = await ways((observed) => readHoldsSince(observed, 'acme', nowMs))
  const isWhole = (way: string) => way.endsWith('(tenant_id=?)')
  assert.deepEqual([since.length > 0, since.filter(isWhole)], [true, []])
})

test('access tokens that work are found without those that have ended', { skip: isOnPostgres }, async () => {
  const page = { limit: 10, beforeId: null, isActive: true }
  const ways = await waysOf(
    (observed) => readTokenPage(observed, 'acme', page, nowMs, async () => {}),
    'access_tokens',
  )
  const parts = ['=', '>'].map((is) => `access_tokens_not_revoked (tenant_id=? AND expires_at_ms${is}?)`)
  assert.deepEqual(ways.slice(1), parts)
})
