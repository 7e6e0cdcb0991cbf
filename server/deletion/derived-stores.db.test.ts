// A second store of derived telemetry beside that of the anomalies: everything that walks the list must reach
// it. It is a table of the real control plane, with a row for each erased hour.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { sql } from 'kysely'
import { openStores, type Stores } from '../../tests/fixtures.ts'
import { derivedStores } from '../app/derived-stores.ts'
import type { DerivedStore, ErasedPart } from '../telemetry/derived-store.ts'
import { StepStore } from './attempt/step-store.ts'
import { buildCertificate } from './certificate/certificate.ts'
import { all, between, hourNs, monday, type Scene, sceneOf, times, weekNs } from './deletion-fixture.ts'
import { requireRow } from './requests/queries.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
  await sql`create table summaries (tenant_id text not null, at_ns bigint not null)`.execute(stores.control)
})
after(() => stores.close())
beforeEach(() => {
  summaries.isBroken = false
})

class Summaries implements DerivedStore {
  readonly name = 'summaries'
  readonly tables = ['summaries']
  /** Whether it fails to remove anything. */
  isBroken = false
  /** Whether its next removal ends after the first hundred hours. */
  isInterrupted = false

  async preview() {
    return {}
  }

  async remove(tenantId: string, { range }: ErasedPart): Promise<number> {
    if (this.isBroken) return 0
    const untilNs = this.isInterrupted ? monday + 100n * hourNs : (range.endNs ?? monday + 9n * weekNs)
    const { numAffectedRows } = await sql`delete from summaries where tenant_id = ${tenantId}
      and at_ns >= ${range.startNs ?? 0n} and at_ns < ${untilNs}`.execute(stores.control)
    if (this.isInterrupted) {
      this.isInterrupted = false
      throw new Error('interrupted')
    }
    return Number(numAffectedRows)
  }

  async count(tenantId: string, { range }: ErasedPart): Promise<number> {
    const { rows } = await sql<{
      n: number
    }>`select count(*) as n from summaries where tenant_id = ${tenantId}
      and at_ns >= ${range.startNs ?? 0n} and at_ns < ${range.endNs ?? monday + 9n * weekNs}`.execute(
      stores.control,
    )
    return rows[0]?.n ?? 0
  }

  async keepers() {
    return new Set<string>()
  }
}

const summaries = new Summaries()

async function scene(): Promise<Scene> {
  const erasing = await sceneOf(stores, { derivedStores: [...derivedStores(stores.control), summaries] })
  for (const { tenantId } of [erasing.own, erasing.neighbour]) {
    for (const timeNs of times)
      await sql`insert into summaries values (${tenantId}, ${timeNs})`.execute(stores.control)
  }
  return erasing
}

const found = ({ own, requests }: Scene, requestId: string) => requests.stored(own.tenantId, requestId)
const left = ({ tenantId }: { tenantId: string }) => summaries.count(tenantId, all)

/** The next attempt, at once, completes the request with the rows of all attempts. */
async function assertContinues(erasing: Scene, requestId: string): Promise<void> {
  await stores.control
    .updateTable('deletion_requests')
    .set({ retry_at_ms: null })
    .where('request_id', '=', requestId)
    .execute()
  await erasing.round()
  const { progress, status } = await found(erasing, requestId)
  assert.deepEqual([status, progress.stores.summaries], ['completed', 336])
}

test('an erasure removes, records and counts the derived records of every store, and leaves the neighbour’s', async () => {
  const erasing = await scene()
  const { request } = await erasing.request(between(null, monday + weekNs))
  await erasing.round()
  const { progress, status } = await found(erasing, request.request_id)
  assert.equal(status, 'completed')
  const { left_over, stores: erased } = progress
  assert.deepEqual([erased.summaries, left_over?.summaries, left_over?.anomalies], [168, 0, 0])
  const steps = await new StepStore(stores.control).sums(request.request_id)
  assert.deepEqual(
    steps
      .filter(({ partitions }) => partitions === 0)
      .map(({ action, rows, store }) => [store, action, rows]),
    [['summaries', 'removed', 168]],
  )
  assert.deepEqual([await left(erasing.own), await left(erasing.neighbour)], [168, 336])
})

test('an erasure does not complete while a store still has a record, and the reason names the store', async () => {
  const erasing = await scene()
  const { request } = await erasing.request(between(monday, monday + 3n * hourNs))
  summaries.isBroken = true
  await erasing.round()
  const { progress, status } = await found(erasing, request.request_id)
  assert.deepEqual([status, progress.left_over?.summaries], ['incomplete', 3])
  assert.deepEqual(await erasing.requests.inStatus(['completed'], erasing.own.tenantId), [])
})

test('an attempt that was interrupted after a store was emptied resumes, and keeps the count', async () => {
  const erasing = await scene()
  const { request } = await erasing.request(all)
  erasing.faults.failOnceAt('summaries removed')
  await erasing.round()
  assert.equal((await erasing.status(request.request_id)).status, 'incomplete')
  assert.equal(await left(erasing.own), 0)
  await assertContinues(erasing, request.request_id)
})

test('an attempt that was interrupted while a store was emptied removes the rest, and keeps the count', async () => {
  const erasing = await scene()
  const { request } = await erasing.request(all)
  summaries.isInterrupted = true
  await erasing.round()
  assert.equal((await erasing.status(request.request_id)).status, 'incomplete')
  assert.equal(await left(erasing.own), 236)
  await assertContinues(erasing, request.request_id)
  assert.deepEqual([await left(erasing.own), await left(erasing.neighbour)], [0, 336])
})

test('two stores of one name are refused, because one count would replace the other', async () => {
  const erasing = await sceneOf(stores, { derivedStores: [summaries, new Summaries()] })
  const { request } = await erasing.request(all)
  await erasing.round()
  assert.equal((await erasing.status(request.request_id)).status, 'incomplete')
})

test('a certificate is refused where a store was not counted', async () => {
  const erasing = await sceneOf(stores)
  const { request } = await erasing.request(all)
  await erasing.round()
  const row = await requireRow(stores.control, erasing.own.tenantId, request.request_id)
  const facts = {
    issuer: { instanceSha256: 'x', serviceVersion: '0', schemaVersion: '0', engineVersion: '0' },
    organisationName: 'own',
    request: row,
    steps: await new StepStore(stores.control).sums(request.request_id),
    completion: { seq: 1, hash: 'h' },
    backups: [],
    notReached: [],
    supersedes: null,
    issuedAtMs: 0,
  }
  const { verification } = buildCertificate({ ...facts, derivedStores: ['anomalies'] })
  assert.equal(verification.stores.anomalies, 0)
  assert.throws(
    () => buildCertificate({ ...facts, derivedStores: ['anomalies', 'summaries'] }),
    /lacks summaries/,
  )
})
