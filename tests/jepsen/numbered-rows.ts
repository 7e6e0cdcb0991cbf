// Bodies of numbered rows as OTLP/JSON, and how a row is recognised wherever it appears. Each row has one
// unique text: the body of a log record, the name of a span, the name of a metric. The text contains the
// number and a checksum over seed and number, so that text of another run is not mistaken for a row of this
// one.

import { createHash } from 'node:crypto'
import type { Signal } from '../../server/telemetry/schema/tables.ts'
import type { NumberedRow } from './history.ts'

const pattern = /cnry-(\d{7})-([0-9a-f]{10})/g

export class NumberedRows {
  readonly #seed: number

  constructor(seed: number) {
    this.#seed = seed
  }

  text(n: number): string {
    return `cnry-${String(n).padStart(7, '0')}-${this.#check(n)}`
  }

  traceId(n: number): string {
    return (n + 1).toString(16).padStart(32, '0')
  }

  /** Numbers of the rows whose text it contains, in order, each as often as it occurs. */
  numbersIn(text: string): number[] {
    return [...text.matchAll(pattern)]
      .filter(([, n, check]) => check === this.#check(Number(n)))
      .map(([, n]) => Number(n))
  }

  /** An export body in OTLP/JSON form. */
  body(signal: Signal, service: string, rows: readonly NumberedRow[]): object {
    const resource = { attributes: [{ key: 'service.name', value: { stringValue: service } }] }
    if (signal === 'logs') {
      const logRecords = rows.map(({ n, timeS }) => ({
        timeUnixNano: `${timeS}000000000`,
        severityNumber: 9,
        body: { stringValue: `order ${this.text(n)} accepted` },
      }))
      return { resourceLogs: [{ resource, scopeLogs: [{ logRecords }] }] }
    }
    if (signal === 'traces') {
      const spans = rows.map(({ n, timeS }) => ({
        traceId: this.traceId(n),
        spanId: (n + 1).toString(16).padStart(16, '0'),
        name: this.text(n),
        kind: 2,
        startTimeUnixNano: `${timeS}000000000`,
        endTimeUnixNano: `${timeS}000005000`,
      }))
      return { resourceSpans: [{ resource, scopeSpans: [{ spans }] }] }
    }
    const metrics = rows.map(({ n, timeS }) => ({
      name: this.text(n),
      gauge: { dataPoints: [{ timeUnixNano: `${timeS}000000000`, asDouble: n }] },
    }))
    return { resourceMetrics: [{ resource, scopeMetrics: [{ metrics }] }] }
  }

  #check(n: number): string {
    return createHash('sha256').update(`${this.#seed} ${n}`).digest('hex').slice(0, 10)
  }
}
