// Writes the rows of the trace table. Timestamp is the span's start. Duration is its end minus its start in
// nanoseconds, and 0 where the end is before the start: clocks go back, and the position of a span in its
// trace matters more than its length. A span without valid ids of its own belongs to no trace and is refused;
// so is one whose parent id has a wrong length. An id of zeros is no id. Ids in links are additional: an
// invalid one becomes ''. Kinds and status codes that the specification doesn't define are `Unspecified` and
// `Unset`.

import type { RowBinary } from '../../telemetry/row-binary.ts'
import { IdCell, ListsCell, MapCell, TextCell } from './cells.ts'
import { fault } from './faults.ts'
import type { RowCollector } from './row-collector.ts'
import { Uint64 } from './uint64.ts'

const spanKinds = ['Unspecified', 'Internal', 'Server', 'Client', 'Producer', 'Consumer'] as const
const statusCodes = ['Unset', 'Ok', 'Error'] as const

/** One event of a span, while it is read. */
class SpanEvent {
  readonly time = new Uint64()
  readonly name = new TextCell()
  readonly attributes = new MapCell()

  clear(): void {
    this.time.clear()
    this.name.clear()
    this.attributes.clear()
  }
}

/** One link of a span, while it is read. */
class SpanLink {
  readonly traceId = new IdCell()
  readonly spanId = new IdCell()
  readonly traceState = new TextCell()
  readonly attributes = new MapCell()

  clear(): void {
    this.traceId.clear()
    this.spanId.clear()
    this.traceState.clear()
    this.attributes.clear()
  }
}

class Span {
  readonly startTime = new Uint64()
  readonly endTime = new Uint64()
  readonly traceId = new IdCell()
  readonly spanId = new IdCell()
  readonly parentSpanId = new IdCell()
  readonly traceState = new TextCell()
  readonly name = new TextCell()
  kind = 0
  readonly attributes = new MapCell()
  statusCode = 0
  readonly statusMessage = new TextCell()
  /** Times, names, attributes. */
  readonly events = new ListsCell(3)
  /** Trace ids, span ids, trace states, attributes. */
  readonly links = new ListsCell(4)

  clear(): void {
    this.startTime.clear()
    this.endTime.clear()
    this.traceId.clear()
    this.spanId.clear()
    this.parentSpanId.clear()
    this.traceState.clear()
    this.name.clear()
    this.kind = 0
    this.attributes.clear()
    this.statusCode = 0
    this.statusMessage.clear()
    this.events.clear()
    this.links.clear()
  }
}

/** Writes spans as rows of the collector; {@link span}, {@link event} and {@link link} are reused. */
export class SpanRows {
  readonly rows: RowCollector
  readonly span = new Span()
  readonly event = new SpanEvent()
  readonly link = new SpanLink()
  readonly #duration = new Uint64()

  constructor(rows: RowCollector) {
    this.rows = rows
  }

  /** Adds {@link event} to the span. */
  addEvent(): void {
    const { event, rows } = this
    rows.noteLongText(event.name)
    rows.noteTime(event.time, fault.innerTimeOutside)
    const { events } = this.span
    events.count++
    events.list(0).uint64(event.time.hi, event.time.lo)
    event.name.writeTo(events.list(1), rows.body)
    event.attributes.writeTo(events.list(2))
  }

  /** Adds {@link link} to the span. */
  addLink(): void {
    const { link, rows } = this
    rows.noteLongText(link.traceState)
    const { links } = this.span
    links.count++
    link.traceId.writeTo(links.list(0))
    link.spanId.writeTo(links.list(1))
    link.traceState.writeTo(links.list(2), rows.body)
    link.attributes.writeTo(links.list(3))
  }

  /** Adds {@link span} as a row, or counts it as rejected. */
  addSpan(): void {
    const { span, rows } = this
    this.#noteFaults()
    const out = rows.startRow('otel_traces', rows.scope.fault)
    if (out === null) return
    this.#write(out)
    rows.finishRow(span.startTime)
  }

  #noteFaults(): void {
    const { span, rows } = this
    rows.noteEventTime(span.startTime)
    if (span.traceId.isEmpty()) rows.note(fault.traceId)
    if (span.spanId.isEmpty()) rows.note(fault.spanId)
    if (span.parentSpanId.isBad) rows.note(fault.parentSpanId)
    rows.noteLongText(span.name)
    rows.noteLongText(span.traceState)
    rows.noteLongText(span.statusMessage)
    rows.noteLongList(span.events.count)
    rows.noteLongList(span.links.count)
  }

  #write(out: RowBinary): void {
    const { span } = this
    const { body } = this.rows
    out.uint64(span.startTime.hi, span.startTime.lo)
    span.traceId.writeTo(out)
    span.spanId.writeTo(out)
    span.parentSpanId.writeTo(out)
    span.traceState.writeTo(out, body)
    span.name.writeTo(out, body)
    out.text(spanKinds[span.kind] ?? 'Unspecified')
    span.attributes.writeTo(out)
    this.#duration.setDifference(span.endTime, span.startTime)
    out.uint64(this.#duration.hi, this.#duration.lo)
    out.text(statusCodes[span.statusCode] ?? 'Unset')
    span.statusMessage.writeTo(out, body)
    span.events.writeTo(out)
    span.links.writeTo(out)
  }
}
