// What a row of the trace table holds. Timestamp is the span's start; Duration is its end minus its start in
// nanoseconds and 0 when the end lies before the start: clocks step back, and the span's place in its trace
// is worth more than its length. A span needs its own valid ids, or it belongs to no trace, and is refused
// without them; so is one whose parent id has a wrong length. An id of zeros means none. Ids in links only
// add to a span: a bad one becomes ''. Kinds and status codes that the specification doesn't know yet are
// `Unspecified` and `Unset`.

import type { AttributeMap, Row } from '../telemetry/rows.ts'
import { noAttributes } from './attributes.ts'
import { fault } from './record-fault.ts'
import type { RowCollector } from './row-collector.ts'
import { differenceText, Uint64 } from './uint64.ts'

const spanKinds = ['Unspecified', 'Internal', 'Server', 'Client', 'Producer', 'Consumer'] as const
const statusCodes = ['Unset', 'Ok', 'Error'] as const

export class Span {
  readonly startTime = new Uint64()
  readonly endTime = new Uint64()
  /** '' when absent or zeros, null when of a wrong length; likewise the other ids. */
  traceId: string | null = ''
  spanId: string | null = ''
  parentSpanId: string | null = ''
  traceState = ''
  name = ''
  kind = 0
  attributes: AttributeMap = noAttributes
  statusCode = 0
  statusMessage = ''
  events: SpanEvents | null = null
  links: SpanLinks | null = null

  clear(): void {
    this.startTime.clear()
    this.endTime.clear()
    this.traceId = ''
    this.spanId = ''
    this.parentSpanId = ''
    this.traceState = ''
    this.name = ''
    this.kind = 0
    this.attributes = noAttributes
    this.statusCode = 0
    this.statusMessage = ''
    this.events = null
    this.links = null
  }
}

/** One event of a span, while it is read. */
export class SpanEvent {
  readonly time = new Uint64()
  name = ''
  attributes: AttributeMap = noAttributes

  clear(): void {
    this.time.clear()
    this.name = ''
    this.attributes = noAttributes
  }
}

/** One link of a span, while it is read. */
export class SpanLink {
  traceId = ''
  spanId = ''
  traceState = ''
  attributes: AttributeMap = noAttributes

  clear(): void {
    this.traceId = ''
    this.spanId = ''
    this.traceState = ''
    this.attributes = noAttributes
  }
}

/** Events of one span, a column each; all the same length. */
export interface SpanEvents {
  readonly times: string[]
  readonly names: string[]
  readonly attributes: AttributeMap[]
}

/** Links of one span, a column each; all the same length. */
export interface SpanLinks {
  readonly traceIds: string[]
  readonly spanIds: string[]
  readonly traceStates: string[]
  readonly attributes: AttributeMap[]
}

const noEvents: SpanEvents = Object.freeze({ times: [], names: [], attributes: [] })
const noLinks: SpanLinks = Object.freeze({ traceIds: [], spanIds: [], traceStates: [], attributes: [] })

/** Turns spans into rows of the collector; {@link span} is filled again and again. */
export class SpanRows {
  readonly rows: RowCollector
  readonly span = new Span()
  readonly #event = new SpanEvent()
  readonly #link = new SpanLink()

  constructor(rows: RowCollector) {
    this.rows = rows
  }

  startEvent(): SpanEvent {
    this.#event.clear()
    return this.#event
  }

  /** Adds the event of {@link startEvent} to the span. */
  addEvent(): void {
    const event = this.#event
    this.rows.noteLongText(event.name)
    this.span.events ??= { times: [], names: [], attributes: [] }
    this.span.events.times.push(this.rows.instant(event.time, fault.innerTimeOutside))
    this.span.events.names.push(event.name)
    this.span.events.attributes.push(event.attributes)
  }

  startLink(): SpanLink {
    this.#link.clear()
    return this.#link
  }

  /** Adds the link of {@link startLink} to the span. */
  addLink(): void {
    const link = this.#link
    this.rows.noteLongText(link.traceState)
    this.span.links ??= { traceIds: [], spanIds: [], traceStates: [], attributes: [] }
    this.span.links.traceIds.push(link.traceId)
    this.span.links.spanIds.push(link.spanId)
    this.span.links.traceStates.push(link.traceState)
    this.span.links.attributes.push(link.attributes)
  }

  /** Adds {@link span} as a row, or counts it as rejected. */
  addSpan(): void {
    const { span, rows } = this
    this.#noteFaults()
    const row = this.#row(rows.eventTime(span.startTime))
    rows.add('otel_traces', row, span.startTime, rows.scope.fault)
  }

  #noteFaults(): void {
    const { span, rows } = this
    if (!span.traceId) rows.note(fault.traceId)
    if (!span.spanId) rows.note(fault.spanId)
    if (span.parentSpanId === null) rows.note(fault.parentSpanId)
    rows.noteLongText(span.name)
    rows.noteLongText(span.traceState)
    rows.noteLongText(span.statusMessage)
    rows.noteLongList(span.events?.times.length ?? 0)
    rows.noteLongList(span.links?.traceIds.length ?? 0)
  }

  #row(timestamp: string): Row {
    const { span } = this
    const { resource, scope } = this.rows
    const events = span.events ?? noEvents
    const links = span.links ?? noLinks
    return [
      timestamp,
      span.traceId,
      span.spanId,
      span.parentSpanId,
      span.traceState,
      span.name,
      spanKinds[span.kind] ?? 'Unspecified',
      resource.serviceName,
      resource.attributes,
      scope.name,
      scope.version,
      span.attributes,
      differenceText(span.endTime, span.startTime),
      statusCodes[span.statusCode] ?? 'Unset',
      span.statusMessage,
      events.times,
      events.names,
      events.attributes,
      links.traceIds,
      links.spanIds,
      links.traceStates,
      links.attributes,
    ]
  }
}
