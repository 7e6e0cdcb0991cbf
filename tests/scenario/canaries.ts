// Telemetry in which every text, id and number is unique, so that a search through files shows whether any of
// it is left, and which part. The search is first shown to find them all, and then trusted to find none.

import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { unpackColumns } from './engine-files.ts'

/** Where a canary was put, such as `log body`, and the bytes to search for. */
interface Canary {
  readonly name: string
  readonly bytes: Buffer
  /** A number in the other byte order. */
  readonly reversed?: Buffer
}

export class Canaries {
  readonly all: Canary[] = []

  /** A unique text. */
  text(name: string): string {
    const text = `cnry${randomBytes(9).toString('base64url')}`
    this.all.push({ name, bytes: Buffer.from(text) })
    return text
  }

  /** A trace or span id; the engine stores ids as hexadecimal text. */
  id(name: string, bytes: 8 | 16): string {
    const text = randomBytes(bytes).toString('hex')
    this.all.push({ name, bytes: Buffer.from(text) })
    return text
  }

  /**
   * A number; found as the eight bytes of a double, which is how columns and SQLite pages store it, in either
   * byte order.
   */
  number(name: string): number {
    const double = randomBytes(8)
    // A positive, finite number of ordinary size.
    double[7] = 0x41
    this.all.push({ name, bytes: double, reversed: Buffer.from(double).reverse() })
    return double.readDoubleLE()
  }
}

const keyed = (key: string, value: string) => [{ key, value: { stringValue: value } }]

/** Export bodies in OTLP/JSON, by signal; each part contains a canary. */
export function canaryExports(canaries: Canaries, timeNs: bigint): Record<string, object> {
  const time = timeNs.toString()
  const text = (name: string) => canaries.text(name)
  const attributes = (name: string) => keyed(text(`${name} key`), text(`${name} value`))
  const resource = (signal: string) => ({
    resource: {
      attributes: [
        ...keyed('service.name', text(`${signal} service name`)),
        ...attributes(`${signal} resource attribute`),
      ],
    },
    // The table of spans, as the Collector's exporter defines it, has no column for this or for the scope's
    // attributes.
    ...(signal !== 'traces' && { schemaUrl: text(`${signal} resource schema`) }),
  })
  const scope = (signal: string) => ({
    scope: {
      name: text(`${signal} scope name`),
      version: text(`${signal} scope version`),
      ...(signal !== 'traces' && { attributes: attributes(`${signal} scope attribute`) }),
    },
  })
  const ids = (name: string) => ({
    traceId: canaries.id(`${name} trace id`, 16),
    spanId: canaries.id(`${name} span id`, 8),
  })
  const logRecord = {
    timeUnixNano: time,
    severityNumber: 9,
    severityText: text('log severity'),
    eventName: text('log event name'),
    body: { stringValue: text('log body') },
    attributes: attributes('log attribute'),
    ...ids('log'),
  }
  const span = {
    ...ids('span'),
    parentSpanId: canaries.id('span parent id', 8),
    traceState: text('span trace state'),
    name: text('span name'),
    kind: 2,
    startTimeUnixNano: time,
    endTimeUnixNano: String(timeNs + 5_000_000n),
    status: { code: 2, message: text('span status message') },
    attributes: attributes('span attribute'),
    events: [
      { timeUnixNano: time, name: text('span event name'), attributes: attributes('span event attribute') },
    ],
    links: [
      { ...ids('span link'), traceState: text('link trace state'), attributes: attributes('link attribute') },
    ],
  }
  return {
    logs: {
      resourceLogs: [{ ...resource('logs'), scopeLogs: [{ ...scope('logs'), logRecords: [logRecord] }] }],
    },
    traces: {
      resourceSpans: [{ ...resource('traces'), scopeSpans: [{ ...scope('traces'), spans: [span] }] }],
    },
    metrics: {
      resourceMetrics: [
        {
          ...resource('metrics'),
          scopeMetrics: [{ ...scope('metrics'), metrics: metricsOf(canaries, time) }],
        },
      ],
    },
  }
}

function metricsOf(canaries: Canaries, time: string): object[] {
  const named = (kind: string) => ({
    name: canaries.text(`${kind} name`),
    description: canaries.text(`${kind} description`),
    unit: canaries.text(`${kind} unit`),
  })
  const point = (kind: string) => ({
    timeUnixNano: time,
    attributes: keyed(canaries.text(`${kind} attribute key`), canaries.text(`${kind} attribute value`)),
  })
  const total = (kind: string) => ({ ...point(kind), count: '3', sum: canaries.number(`${kind} sum`) })
  const exemplars = (kind: string) => [
    {
      timeUnixNano: time,
      asDouble: canaries.number(`${kind} exemplar value`),
      traceId: canaries.id(`${kind} exemplar trace id`, 16),
      spanId: canaries.id(`${kind} exemplar span id`, 8),
      filteredAttributes: keyed(
        canaries.text(`${kind} exemplar key`),
        canaries.text(`${kind} exemplar text`),
      ),
    },
  ]
  const number = (kind: string) => ({
    ...point(kind),
    asDouble: canaries.number(`${kind} value`),
    exemplars: exemplars(kind),
  })
  const bucketed = {
    ...total('histogram'),
    min: canaries.number('histogram min'),
    max: canaries.number('histogram max'),
    bucketCounts: ['1', '2'],
    explicitBounds: [canaries.number('histogram bound')],
    exemplars: exemplars('histogram'),
  }
  const scaled = {
    ...total('exponential histogram'),
    scale: 2,
    zeroCount: '0',
    positive: { offset: 1, bucketCounts: ['3'] },
  }
  const quantileValues = [{ quantile: 0.5, value: canaries.number('summary quantile value') }]
  const cumulative = { aggregationTemporality: 2 }
  return [
    { ...named('gauge'), gauge: { dataPoints: [number('gauge')] } },
    { ...named('sum'), sum: { ...cumulative, isMonotonic: true, dataPoints: [number('sum')] } },
    { ...named('histogram'), histogram: { ...cumulative, dataPoints: [bucketed] } },
    {
      ...named('exponential histogram'),
      exponentialHistogram: { ...cumulative, dataPoints: [scaled] },
    },
    { ...named('summary'), summary: { dataPoints: [{ ...total('summary'), quantileValues }] } },
  ]
}

/** How often a search begins again because the engine renamed or removed a file during it. */
const searchesMax = 20

/**
 * Every file below a folder whose bytes, plain or decompressed, contain the canary; numbers in either byte
 * order. A file that disappears during the search may be there under another name, such as the part of an
 * insert that ends, so everything is searched again.
 */
export function filesWithCanaries(folder: string, canaries: readonly Canary[]): Map<string, string[]> {
  for (let searches = 1; ; searches++) {
    try {
      return searchOnce(folder, canaries)
    } catch (error) {
      const isGone = error instanceof Error && 'code' in error && error.code === 'ENOENT'
      if (!isGone || searches === searchesMax) throw error
    }
  }
}

function searchOnce(folder: string, canaries: readonly Canary[]): Map<string, string[]> {
  const found = new Map(canaries.map(({ name }) => [name, [] as string[]]))
  for (const path of filesBelow(folder)) {
    const file = readFileSync(path)
    const content = path.endsWith('.bin') ? Buffer.concat([file, unpackColumns(file)]) : file
    for (const { bytes, name, reversed } of canaries) {
      const isThere = content.includes(bytes) || (reversed !== undefined && content.includes(reversed))
      if (isThere) found.get(name)?.push(path)
    }
  }
  return found
}

/** Paths of every file that is now below a folder. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false)
}
