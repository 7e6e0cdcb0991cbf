// How the database reads lists of anomalies: in the order of an index, so that nothing is sorted and no row
// that a filter leaves out is read, however many an organisation has.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { CompiledQuery, createQueryId, type RootOperationNode } from 'kysely'
import { isOnPostgres } from '../../../tests/control-planes.ts'
import type { Control } from '../../control/database.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { readActiveHolds } from '../../deletion/governance/active-holds.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import { atNs, noonMs, openControl } from '../detection-fixture.ts'
import { type AnomalyPage, DetectionStore } from './store.ts'

const { control, close } = await openControl()
after(close)

/** Returns the plan of the statement that lists a page. */
async function planOf(page: Partial<AnomalyPage>): Promise<string> {
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
  const [node] = nodes
  assert(node !== undefined && nodes.length === 1)
  const { parameters, sql } = control.getExecutor().compileQuery(node, createQueryId())
  const explain = isOnPostgres ? 'explain' : 'explain query plan'
  return control.transaction().execute(async (trx) => {
    // Of an empty table PostgreSQL would sort no rows, rather than read an index.
    if (isOnPostgres) await trx.executeQuery(CompiledQuery.raw('set local enable_sort = off'))
    const { rows } = await trx.executeQuery(CompiledQuery.raw(`${explain} ${sql}`, [...parameters]))
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
    const plan = await planOf(page)
    assert.match(plan, /anomalies_by_start/)
    assert.doesNotMatch(plan, /TEMP B-TREE|Sort/)
  }
  const ofDetector: Partial<AnomalyPage>[] = [{}, { before }, { filter: around }]
  for (const page of ofDetector) {
    const plan = await planOf({ ...page, filter: { ...page.filter, detector_id: 'det_1' } })
    assert.match(plan, /anomalies_by_detector/)
    assert.doesNotMatch(plan, /TEMP B-TREE|Sort/)
  }
})
