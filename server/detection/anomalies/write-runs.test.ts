// Runs with many findings are recorded in transactions of their own, and of what is recorded only that which
// may share time with a finding is read.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { atNs, definitionOf, errorsDraft, findingOf, runRecordOf } from '../detection-fixture.ts'
import type { StoredDetector } from '../detectors/detector.ts'
import { comparedFromNs, type RunRecord } from './anomaly-rows.ts'
import { createdAtOnce, transactionsOf } from './write-runs.ts'

const detector: StoredDetector = {
  ...{ id: 'det_1', tenantId: 'acme', definition: definitionOf(errorsDraft), isSystem: false },
  ...{ revision: 1, tuningRevision: 0, nextRunAtMs: 0, createdAtMs: 0 },
  ...{ lastRunAtMs: null, lastStatus: null, lastNote: null },
}

function runWith(count: number): RunRecord {
  const findings = Array.from({ length: count }, (_, i) => findingOf(atNs(i), atNs(i + 0.5)))
  return runRecordOf(detector, 0, findings)
}

const failed: RunRecord = { ...runWith(0), found: null }

test('runs share a transaction until they have too many findings together, and all are recorded in order', () => {
  const few = Array.from({ length: 25 }, () => runWith(3))
  assert.deepEqual(transactionsOf(few), [few])
  const [most, one, half] = [runWith(createdAtOnce + 50), runWith(1), runWith(createdAtOnce / 2)]
  assert.deepEqual(transactionsOf([most, failed, most, one, half, half]), [
    [most],
    [failed],
    [most],
    [one, half],
    [half],
  ])
  assert.deepEqual(transactionsOf([half, half, failed, one]), [[half, half, failed], [one]])
  assert.deepEqual(transactionsOf([]), [])
})

test('ended anomalies are compared from the first finding on, and never from before the window', () => {
  const window = { startNs: atNs(-60), windowStartNs: atNs(-60), judgedUntilNs: null, isTruncated: false }
  const findings = [findingOf(atNs(5), atNs(6)), findingOf(atNs(2), atNs(3))]
  assert.equal(comparedFromNs({ findings, window }), atNs(2))
  const long = findingOf(atNs(-90), atNs(1))
  assert.equal(comparedFromNs({ findings: [...findings, long], window }), atNs(-60))
  assert.equal(comparedFromNs({ findings: [], window }), null)
})
