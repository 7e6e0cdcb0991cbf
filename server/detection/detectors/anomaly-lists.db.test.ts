// How the database reads lists of anomalies: in the order of an index, so that nothing is sorted and no row
// that a filter leaves out is read, however many an organisation has.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { CompiledQuery, createQueryId, type RootOperationNode, sql } from 'kysely'
import { isOnPostgres } from '../../../tests/control-planes.ts'
import { paceOfSteps } from '../../../tests/with-turns.ts'
import type { Control } from '../../control/database.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { readActiveHolds } from '../../deletion/governance/active-holds.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import { atNs, noonMs, openControl } from '../detection-fixture.ts'
import type { AnomalyPage } from './anomaly-list.ts'
import { DetectionStore } from './store.ts'

const { control, close } = await openControl()
after(close)

/** Returns the plans of the statements that list a page. */
async function plansOf(page: Partial<AnomalyPage>): Promise<string[]> {
  const nodes: RootOperationNode[] = []
  const noting: Control = control.withPlugin({
    transformQuery: ({ node }) => {
      nodes.push(node)
      return node
    },
    transformResult: async ({ result }) => result,
  })
  const store = new DetectionStore(noting, new ManualClock(noonMs), new TelemetryGate(), readActiveHolds)
  await store.listAnomalies('acme', { limit: 50, filter: {}, before: null, ...page })
  const plans: string[] = []
  for (const node of nodes) plans.push(await explained(node))
  return plans
}

async function explained(node: RootOperationNode): Promise<string> {
  const { parameters, sql: text } = control.getExecutor().compileQuery(node, createQueryId())
  const explain = isOnPostgres ? 'explain' : 'explain query plan'
  return control.transaction().execute(async (trx) => {
    // Of an empty table PostgreSQL would sort no rows, rather than read an index.
    if (isOnPostgres) await trx.executeQuery(CompiledQuery.raw('set local enable_sort = off'))
    const { rows } = await trx.executeQuery(CompiledQuery.raw(`${explain} ${text}`, [...parameters]))
    return JSON.stringify(rows)
  })
}

const before = { startedNs: atNs(0), id: 'ano_1' }
const around = { range_start: atNs(-60), range_end: atNs(60) }

test('every list of anomalies is read in the order of an index, and nothing is sorted', async () => {
  const ofOrganisation: Partial<AnomalyPage>[] = [
    {},
    { before },
    { filter: { open: 'true' } },
    { filter: { muted: 'false' }, before },
    { filter: around },
    { filter: { range_start: atNs(-60), open: 'false' } },
  ]
  for (const page of ofOrganisation) {
    for (const plan of await plansOf(page)) {
      assert.match(plan, /anomalies_by_start/)
      assert.doesNotMatch(plan, /TEMP B-TREE|Sort/)
    }
  }
  const ofDetector: Partial<AnomalyPage>[] = [{}, { before }, { filter: around }]
  for (const page of ofDetector) {
    for (const plan of await plansOf({ ...page, filter: { ...page.filter, detector_id: 'det_1' } })) {
      assert.match(plan, /anomalies_by_detector/)
      assert.doesNotMatch(plan, /TEMP B-TREE|Sort/)
    }
  }
})

test('a list that passes over many anomalies finds all that match, and looks at a part of them at once', async () => {
  const many = 25_000
  const first = atNs(0)
  await sql`
    with recursive numbers (i) as (select 0 union all select i + 1 from numbers where i < ${sql.lit(many - 1)})
    insert into anomalies (id, tenant_id, detector_id, group_key, metric_key, signal, started_at_ns,
      ended_at_ns, seen_until_ns, peak_at_ns, score, reason, created_at_ms, updated_at_ms, muted)
    select 'ano_' || tenant_id || '_' || i, tenant_id, 'det_1', '{}', 'spans.rate', 'traces', at, at, at, at, 1,
      'r', 0, 0, case when i in (3, 12000) then 1 else 0 end
    from (select i, tenant_id, cast(${first.toString()} + cast(i as bigint) as text) as at
      from numbers cross join organisations) as all_of_them`.execute(control)
  const gate = new TelemetryGate()
  const store = new DetectionStore(control, new ManualClock(noonMs), gate, readActiveHolds)
  const { pace, turns } = paceOfSteps()
  const muted = (limit: number) =>
    store.listAnomalies('acme', { limit, filter: { muted: 'true' }, before: null, pace })
  const idsOf = async (list: Promise<readonly { readonly id: string }[]>) => (await list).map(({ id }) => id)
  assert.deepEqual(await idsOf(muted(10)), ['ano_acme_12000', 'ano_acme_3'])
  assert.equal(turns(), 10, 'one after each 2,500')
  assert.deepEqual(await idsOf(muted(1)), ['ano_acme_12000'])
  const all = store.listAnomalies('acme', { limit: 1, filter: {}, before: null })
  assert.deepEqual(await idsOf(all), [`ano_acme_${many - 1}`])
  const range = { startNs: first, endNs: null }
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range })
  const visible = (tenantId: string) => store.listAnomalies(tenantId, { limit: 2, filter: {}, before: null })
  assert.deepEqual(await idsOf(visible('acme')), ['ano_acme_0'], 'hidden ones are passed over alike')
  assert.deepEqual(await idsOf(visible('globex')), [`ano_globex_${many - 1}`, `ano_globex_${many - 2}`])
})
