// What is stored by UTC day, as the chart of the page Storage needs it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { daysBetween } from '../../ui/instants.ts'
import { type ServiceUsage, seriesByService, seriesBySignal, type Usage } from './usage-days.ts'

const days = ['2026-11-01', '2026-11-02', '2026-11-03', '2026-11-04']
const stored = (...pairs: readonly [day: string, rows: number][]) =>
  pairs.map(([day, rows]) => ({ day, rows, bytes: rows * 10 }))

test('a day has what is stored of it, zero where there is nothing, and nothing of days that are not shown', () => {
  const usage = {
    signals: [
      {
        signal: 'logs',
        days: stored(['2026-10-31', 9], ['2026-11-02', 2], ['2026-11-04', 4], ['2026-11-05', 9]),
      },
      { signal: 'traces', days: [] },
    ],
  } as unknown as Usage
  const values = seriesBySignal(usage, days, 'rows').map((series) => series.values)
  assert.deepEqual(values, [
    [0, 2, 0, 4],
    [0, 0, 0, 0],
  ])
})

test('days of all signals of a service are added, wherever each signal begins', () => {
  const usage = {
    services: [
      {
        service: 'checkout',
        signals: [
          { days: stored(['2026-11-02', 2], ['2026-11-03', 3]) },
          { days: stored(['2026-11-03', 10], ['2026-11-05', 10]) },
          { days: stored(['2026-11-04', 10]) },
          { days: stored(['2026-11-01', 100], ['2026-11-04', 100]) },
        ],
      },
    ],
    others: { services: 0, rows: 0, bytes: 0 },
  } as unknown as ServiceUsage
  assert.deepEqual(seriesByService(usage, [], days, 'bytes')[0]?.values, [1000, 20, 130, 1100])
})

test('days of a century are those of the calendar', () => {
  const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)
  const startMs = Date.UTC(1999, 0, 31)
  const expected = Array.from({ length: 36_600 }, (_, day) => dayOf(startMs + day * 86_400_000))
  assert.deepEqual(daysBetween('1999-01-31', expected.at(-1) ?? ''), expected)
})
