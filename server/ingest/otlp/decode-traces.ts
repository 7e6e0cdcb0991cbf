// OTLP traces in both encodings; each span is written by SpanRows.

import { type DecodedExport, RowCollector, type RowOrigin, type SignalShape } from '../rows/row-collector.ts'
import { SpanRows } from '../rows/span-rows.ts'
import {
  type EnumNames,
  type JsonObject,
  JsonReader,
  type JsonRecordReader,
  type OuterNames,
  parseJson,
  readJsonRequest,
} from './json-reader.ts'
import { readAttribute } from './proto-attributes.ts'
import { ProtoReader } from './proto-reader.ts'
import { type ProtoRecordReader, readProtoRequest } from './proto-request.ts'

const names: OuterNames = {
  resources: ['resourceSpans', 'resource_spans'],
  scopes: ['scopeSpans', 'scope_spans'],
  records: ['spans', 'spans'],
}

const spanKinds: EnumNames = new Map([
  ['SPAN_KIND_UNSPECIFIED', 0],
  ['SPAN_KIND_INTERNAL', 1],
  ['SPAN_KIND_SERVER', 2],
  ['SPAN_KIND_CLIENT', 3],
  ['SPAN_KIND_PRODUCER', 4],
  ['SPAN_KIND_CONSUMER', 5],
])

const statusCodes: EnumNames = new Map([
  ['STATUS_CODE_UNSET', 0],
  ['STATUS_CODE_OK', 1],
  ['STATUS_CODE_ERROR', 2],
])

const shape: SignalShape = {
  signal: 'traces',
  names: [names.resources[0], names.scopes[0], names.records[0]],
  noun: 'span',
}

/**
 * Reads an `ExportTraceServiceRequest`.
 *
 * @throws OtlpDecodeError
 */
export function decodeTracesProto(origin: RowOrigin): DecodedExport {
  const rows = new RowCollector(shape, origin)
  const spans = new SpanProto(new ProtoReader(origin.body, rows), new SpanRows(rows))
  readProtoRequest(spans.reader, spans)
  return rows.finish()
}

/**
 * Reads an `ExportTraceServiceRequest`.
 *
 * @throws OtlpDecodeError
 */
export function decodeTracesJson(origin: RowOrigin): DecodedExport {
  const rows = new RowCollector(shape, origin)
  const spans = new SpanJson(new JsonReader(rows), new SpanRows(rows))
  readJsonRequest(spans.reader, parseJson(origin.body), names, spans)
  return rows.finish()
}

class SpanProto implements ProtoRecordReader {
  readonly reader: ProtoReader
  readonly #out: SpanRows

  constructor(reader: ProtoReader, out: SpanRows) {
    this.reader = reader
    this.#out = out
  }

  readRecord(end: number): void {
    const { reader } = this
    const { span, rows } = this.#out
    let attributeCount = 0
    span.clear()
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      switch (tag) {
        case (1 << 3) | 2: // trace_id
          reader.id(end, 16, span.traceId)
          break
        case (2 << 3) | 2: // span_id
          reader.id(end, 8, span.spanId)
          break
        case (3 << 3) | 2: // trace_state
          reader.text(end, span.traceState)
          break
        case (4 << 3) | 2: // parent_span_id
          reader.id(end, 8, span.parentSpanId)
          break
        case (5 << 3) | 2: // name
          reader.text(end, span.name)
          break
        case (6 << 3) | 0: // kind
          span.kind = reader.int32()
          break
        case (7 << 3) | 1: // start_time_unix_nano
          reader.fixed64(span.startTime)
          break
        case (8 << 3) | 1: // end_time_unix_nano
          reader.fixed64(span.endTime)
          break
        case (9 << 3) | 2: // attributes
          readAttribute(reader, end, span.attributes)
          attributeCount++
          break
        case (11 << 3) | 2: // events
          this.#readEvent(reader.enter(end))
          break
        case (13 << 3) | 2: // links
          this.#readLink(reader.enter(end))
          break
        case (15 << 3) | 2: // status
          this.#readStatus(reader.enter(end))
          break
        default:
          reader.skip(tag, end, 0b1010_1011_1111_1110)
      }
    }
    rows.noteManyAttributes(attributeCount)
    this.#out.addSpan()
  }

  #readEvent(end: number): void {
    const { reader } = this
    const { event } = this.#out
    event.clear()
    let attributeCount = 0
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      switch (tag) {
        case (1 << 3) | 1: // time_unix_nano
          reader.fixed64(event.time)
          break
        case (2 << 3) | 2: // name
          reader.text(end, event.name)
          break
        case (3 << 3) | 2: // attributes
          readAttribute(reader, end, event.attributes)
          attributeCount++
          break
        default:
          reader.skip(tag, end, 0b1110)
      }
    }
    this.#out.rows.noteManyAttributes(attributeCount)
    this.#out.addEvent()
  }

  #readLink(end: number): void {
    const { reader } = this
    const { link } = this.#out
    link.clear()
    let attributeCount = 0
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      switch (tag) {
        case (1 << 3) | 2: // trace_id
          reader.id(end, 16, link.traceId)
          break
        case (2 << 3) | 2: // span_id
          reader.id(end, 8, link.spanId)
          break
        case (3 << 3) | 2: // trace_state
          reader.text(end, link.traceState)
          break
        case (4 << 3) | 2: // attributes
          readAttribute(reader, end, link.attributes)
          attributeCount++
          break
        default:
          reader.skip(tag, end, 0b11110)
      }
    }
    this.#out.rows.noteManyAttributes(attributeCount)
    this.#out.addLink()
  }

  #readStatus(end: number): void {
    const { reader } = this
    const { span } = this.#out
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      if (tag === ((2 << 3) | 2)) reader.text(end, span.statusMessage)
      else if (tag === ((3 << 3) | 0)) span.statusCode = reader.int32()
      else reader.skip(tag, end, 0b1100)
    }
  }
}

class SpanJson implements JsonRecordReader {
  readonly reader: JsonReader
  readonly #out: SpanRows

  constructor(reader: JsonReader, out: SpanRows) {
    this.reader = reader
    this.#out = out
  }

  readRecord(value: unknown): void {
    const object = this.reader.object(value, '')
    this.#out.span.clear()
    for (const name in object) {
      const member = object[name]
      if (member !== null) this.#readField(name, member)
    }
    this.#out.addSpan()
  }

  #readField(name: string, value: unknown): void {
    const { reader } = this
    const { span } = this.#out
    switch (name) {
      case 'traceId':
      case 'trace_id':
        reader.id(value, name, 16, span.traceId)
        break
      case 'spanId':
      case 'span_id':
        reader.id(value, name, 8, span.spanId)
        break
      case 'traceState':
      case 'trace_state':
        reader.text(value, name, span.traceState)
        break
      case 'parentSpanId':
      case 'parent_span_id':
        reader.id(value, name, 8, span.parentSpanId)
        break
      case 'name':
        reader.text(value, name, span.name)
        break
      case 'kind':
        span.kind = reader.enumeration(value, name, spanKinds)
        break
      case 'startTimeUnixNano':
      case 'start_time_unix_nano':
        reader.uint64(value, name, span.startTime)
        break
      case 'endTimeUnixNano':
      case 'end_time_unix_nano':
        reader.uint64(value, name, span.endTime)
        break
      case 'attributes':
        reader.attributes(value, name, span.attributes)
        break
      case 'events':
        for (const event of reader.list(value, name)) this.#readEvent(reader.object(event, name))
        break
      case 'links':
        for (const link of reader.list(value, name)) this.#readLink(reader.object(link, name))
        break
      case 'status':
        this.#readStatus(reader.object(value, name))
        break
    }
  }

  #readEvent(item: JsonObject): void {
    const { reader } = this
    const { event } = this.#out
    event.clear()
    for (const name in item) {
      const value = item[name]
      if (value === null) continue
      switch (name) {
        case 'timeUnixNano':
        case 'time_unix_nano':
          reader.uint64(value, `events.${name}`, event.time)
          break
        case 'name':
          reader.text(value, `events.${name}`, event.name)
          break
        case 'attributes':
          reader.attributes(value, `events.${name}`, event.attributes)
          break
      }
    }
    this.#out.addEvent()
  }

  #readLink(item: JsonObject): void {
    const { reader } = this
    const { link } = this.#out
    link.clear()
    for (const name in item) {
      const value = item[name]
      if (value === null) continue
      switch (name) {
        case 'traceId':
        case 'trace_id':
          reader.id(value, `links.${name}`, 16, link.traceId)
          break
        case 'spanId':
        case 'span_id':
          reader.id(value, `links.${name}`, 8, link.spanId)
          break
        case 'traceState':
        case 'trace_state':
          reader.text(value, `links.${name}`, link.traceState)
          break
        case 'attributes':
          reader.attributes(value, `links.${name}`, link.attributes)
          break
      }
    }
    this.#out.addLink()
  }

  #readStatus(status: JsonObject): void {
    const { reader } = this
    const { span } = this.#out
    reader.text(status.message ?? '', 'status.message', span.statusMessage)
    span.statusCode = reader.enumeration(status.code ?? 0, 'status.code', statusCodes)
  }
}
