// A little telemetry that is easy to recognise, stored and read back over HTTP: one gauge value, one log
// record and one span per instant. Two organisations that send the same instants have the same telemetry, so
// telemetry of the other one could only be noticed by counting.

import assert from 'node:assert/strict'
import type { z } from 'zod'
import { StorageUsage } from '../../contract/organisation/usage.ts'
import { LogRecord, SeriesAnswer, Span } from '../../contract/telemetry/queries.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { formatInstant } from '../../contract/values/instant.ts'
import type { Signal } from '../../server/telemetry/schema/tables.ts'
import type { Service, Who } from './service.ts'

export const minuteNs = 60_000_000_000n
/** Monday 2026-01-05T00:00:00Z: weeks are the engine's partitions. */
export const mondayNs = 1_767_571_200_000_000_000n

/** An export request in OTLP/JSON form with one record per instant. */
export function sampleExport(signal: Signal, timesNs: readonly bigint[], service = 'shop'): object {
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: service } }] }
  const times = timesNs.map(String)
  if (signal === 'logs') {
    const logRecords = times.map((timeUnixNano) => ({
      timeUnixNano,
      severityNumber: 9,
      body: { stringValue: `paid at ${timeUnixNano}` },
    }))
    return { resourceLogs: [{ resource, scopeLogs: [{ logRecords }] }] }
  }
  if (signal === 'traces') {
    const spans = times.map((time) => ({
      traceId: BigInt(time).toString(16).padStart(32, '0'),
      spanId: BigInt(time).toString(16).padStart(16, '0'),
      name: 'GET /cart',
      kind: 2,
      startTimeUnixNano: time,
      endTimeUnixNano: String(BigInt(time) + 5_000_000n),
    }))
    return { resourceSpans: [{ resource, scopeSpans: [{ spans }] }] }
  }
  const dataPoints = times.map((timeUnixNano) => ({ timeUnixNano, asInt: '7' }))
  const metrics = [{ name: 'queue.length', unit: '{item}', gauge: { dataPoints } }]
  return { resourceMetrics: [{ resource, scopeMetrics: [{ metrics }] }] }
}

/** Sends all three signals; each must be accepted completely. */
export async function sendSample(service: Service, as: Who, timesNs: readonly bigint[]): Promise<void> {
  for (const signal of ['metrics', 'logs', 'traces'] as const) {
    const answer = await service.send('POST', `/v1/${signal}`, { as, json: sampleExport(signal, timesNs) })
    assert.deepEqual([answer.status, answer.text], [200, '{}'])
  }
}

export interface Readable {
  readonly logs: readonly z.infer<typeof LogRecord>[]
  readonly spans: readonly z.infer<typeof Span>[]
  /** Values of the gauge at the minutes that have one. */
  readonly readings: readonly { time: string; value: number | null }[]
  readonly storedRows: number
}

/**
 * What a person of the organisation can read within an hour of Monday's start, and the number of all its
 * stored rows.
 */
export async function readSample(service: Service, as: Who): Promise<Readable> {
  const range = `range_start=${formatInstant(mondayNs)}&range_end=${formatInstant(mondayNs + 60n * minuteNs)}&limit=500`
  const series = `/telemetry/series?metric_key=queue.length&${range.replace('&limit=500', '')}`
  const [logs, spans, answer, storage] = await Promise.all([
    service.read(`/telemetry/logs?${range}`, pageOf(LogRecord), as),
    service.read(`/telemetry/spans?${range}`, pageOf(Span), as),
    service.read(series, SeriesAnswer, as),
    service.read('/usage/storage', StorageUsage, as),
  ])
  return {
    logs: logs.items,
    spans: spans.items,
    readings: answer.series.flatMap(({ points }) => points.filter(({ value }) => value !== null)),
    storedRows: storage.rows,
  }
}
