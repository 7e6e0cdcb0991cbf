// The width of a detector's buckets, from how often something arrived in the week before.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nsPerMinute } from '../../../contract/values/instant.ts'
import { definitionOf } from '../detection-fixture.ts'
import { methodChoiceOf } from '../detectors/detector.ts'
import { BucketWidths } from './bucket-widths.ts'
import type { SeriesSource } from './course-run.ts'
import { FilePoints } from './file-replay.ts'

const noonMs = Date.UTC(2026, 8, 11, 12)

/** Two weeks until noon with one event in `everyMinutes`. */
function arrivals(everyMinutes: number): SeriesSource {
  const count = Math.ceil((14 * 1440) / everyMinutes)
  const noonNs = BigInt(noonMs) * 1_000_000n
  const timeNs = (i: number) => noonNs - BigInt((count - i) * everyMinutes) * nsPerMinute
  return new FilePoints(Array.from({ length: count }, (_, i) => ({ timeNs: timeNs(i), value: 1 }))).source()
}

async function widthOf(metricKey: string, everyMinutes: number): Promise<number> {
  const definition = definitionOf({
    name: 'width',
    metric_key: metricKey,
    method_key: 'robust_band',
    params: {},
    window_minutes: 1440,
    schedule_minutes: 5,
  })
  const choice = methodChoiceOf(definition) ?? assert.fail()
  return new BucketWidths().widthFor({
    detectorId: 'det_1',
    version: '1',
    definition,
    choice,
    nowMs: noonMs,
    source: arrivals(everyMinutes),
    share: { tenantId: 'acme', kind: 'asked' },
    feedback: new Map(),
    judgedNothing: false,
    mayBeLate: true,
  })
}

test('buckets are the narrowest in which something arrives', async () => {
  assert.equal(await widthOf('queue.depth', 1), 1)
  assert.equal(await widthOf('queue.depth', 4), 5)
  assert.equal(await widthOf('spans.rate', 12), 15)
  assert.equal(await widthOf('spans.rate', 50), 60)
})

test('buckets of error logs stay narrow however few there are, so that a burst is not reported an hour later', async () => {
  assert.equal(await widthOf('logs.error_count', 50), 1)
})
