// OTLP logs in both encodings. A record's time is when the event happened, else when it was observed, else
// when this request arrived: a log without any clock is still evidence. A time that is set and can't be
// stored is refused and not replaced. Ids of a wrong length become '', because the record is of use without
// them.

import type { AttributeMap, Row } from '../telemetry/rows.ts'
import { noAttributes } from './attributes.ts'
import { Place } from './otlp-decode-error.ts'
import {
  type EnumNames,
  JsonReader,
  type JsonRecordReader,
  type OuterNames,
  parseJson,
  readJsonRequest,
} from './otlp-json.ts'
import {
  ProtoReader,
  type ProtoRecordReader,
  readAnyValue,
  readAttribute,
  readProtoRequest,
} from './otlp-proto.ts'
import { fault, maxBodyLength } from './record-fault.ts'
import { type DecodedExport, RowCollector } from './row-collector.ts'
import { Uint64 } from './uint64.ts'

const names: OuterNames = {
  resources: ['resourceLogs', 'resource_logs'],
  scopes: ['scopeLogs', 'scope_logs'],
  records: ['logRecords', 'log_records'],
}

const severityLevels = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'] as const

/** `SEVERITY_NUMBER_TRACE` = 1, `..._TRACE2` = 2 and so on, four numbers to a level. */
const severityNumbers: EnumNames = new Map([
  ['SEVERITY_NUMBER_UNSPECIFIED', 0],
  ...severityLevels.flatMap((level, at) =>
    ['', '2', '3', '4'].map((step, offset): [string, number] => [
      `SEVERITY_NUMBER_${level}${step}`,
      at * 4 + offset + 1,
    ]),
  ),
])

/**
 * Reads an `ExportLogsServiceRequest`.
 *
 * @throws OtlpDecodeError
 */
export function decodeLogsProto(body: Buffer, receivedNs: bigint): DecodedExport {
  const rows = createCollector()
  const logs = new LogProto(new ProtoReader(body, rows), new LogRows(rows, receivedNs))
  readProtoRequest(logs.reader, logs)
  return rows.finish()
}

/**
 * Reads an `ExportLogsServiceRequest`.
 *
 * @throws OtlpDecodeError
 */
export function decodeLogsJson(body: Buffer, receivedNs: bigint): DecodedExport {
  const rows = createCollector()
  const logs = new LogJson(new JsonReader(rows), new LogRows(rows, receivedNs))
  readJsonRequest(logs.reader, parseJson(body), names, logs)
  return rows.finish()
}

function createCollector(): RowCollector {
  return new RowCollector(new Place([names.resources[0], names.scopes[0], names.records[0]]), 'log record')
}

class LogRecord {
  readonly time = new Uint64()
  readonly observedTime = new Uint64()
  severityNumber = 0
  severityText = ''
  body = ''
  attributes: AttributeMap = noAttributes
  flags = 0
  traceId = ''
  spanId = ''
  eventName = ''

  clear(): void {
    this.time.clear()
    this.observedTime.clear()
    this.severityNumber = 0
    this.severityText = ''
    this.body = ''
    this.attributes = noAttributes
    this.flags = 0
    this.traceId = ''
    this.spanId = ''
    this.eventName = ''
  }
}

/** Turns records into rows of the collector; {@link record} is filled again and again. */
class LogRows {
  readonly rows: RowCollector
  readonly record = new LogRecord()
  readonly #receivedTime = new Uint64()

  constructor(rows: RowCollector, receivedNs: bigint) {
    this.rows = rows
    this.#receivedTime.setBigInt(receivedNs)
  }

  add(): void {
    const { record, rows } = this
    rows.noteLongText(record.severityText)
    rows.noteLongText(record.eventName)
    if (record.body.length > maxBodyLength) rows.note(fault.bodyTooLong)
    if (record.severityNumber < 0 || record.severityNumber > 255) rows.note(fault.severity)
    const time = this.#time()
    rows.add('otel_logs', this.#row(rows.eventTime(time)), time, rows.scope.fault)
  }

  #time(): Uint64 {
    if (!this.record.time.isZero()) return this.record.time
    return this.record.observedTime.isZero() ? this.#receivedTime : this.record.observedTime
  }

  #row(timestamp: string): Row {
    const { record } = this
    const { resource, scope } = this.rows
    return [
      timestamp,
      record.traceId,
      record.spanId,
      record.flags & 0xff,
      record.severityText,
      record.severityNumber,
      resource.serviceName,
      record.body,
      resource.schemaUrl,
      resource.attributes,
      scope.schemaUrl,
      scope.name,
      scope.version,
      scope.attributes,
      record.attributes,
      record.eventName,
    ]
  }
}

class LogProto implements ProtoRecordReader {
  readonly reader: ProtoReader
  readonly #out: LogRows

  constructor(reader: ProtoReader, out: LogRows) {
    this.reader = reader
    this.#out = out
  }

  readRecord(end: number): void {
    const { reader } = this
    const { record, rows } = this.#out
    let attributeCount = 0
    record.clear()
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      switch (tag) {
        case (1 << 3) | 1: // time_unix_nano
          reader.fixed64(record.time)
          break
        case (2 << 3) | 0: // severity_number
          record.severityNumber = reader.wire.int32()
          break
        case (3 << 3) | 2: // severity_text
          record.severityText = reader.text(end)
          break
        case (5 << 3) | 2: // body
          record.body = readAnyValue(reader, reader.enter(end), 0)
          break
        case (6 << 3) | 2: // attributes
          record.attributes = readAttribute(reader, end, record.attributes)
          attributeCount++
          break
        case (8 << 3) | 5: // flags
          record.flags = reader.wire.fixed32()
          break
        case (9 << 3) | 2: // trace_id
          record.traceId = reader.id(end, 16) ?? ''
          break
        case (10 << 3) | 2: // span_id
          record.spanId = reader.id(end, 8) ?? ''
          break
        case (11 << 3) | 1: // observed_time_unix_nano
          reader.fixed64(record.observedTime)
          break
        case (12 << 3) | 2: // event_name
          record.eventName = reader.text(end)
          break
        default:
          reader.skip(tag, end, 0b1_1111_0110_1110)
      }
    }
    rows.noteManyAttributes(attributeCount)
    this.#out.add()
  }
}

class LogJson implements JsonRecordReader {
  readonly reader: JsonReader
  readonly #out: LogRows

  constructor(reader: JsonReader, out: LogRows) {
    this.reader = reader
    this.#out = out
  }

  readRecord(value: unknown): void {
    const object = this.reader.object(value, '')
    this.#out.record.clear()
    for (const name in object) {
      const member = object[name]
      if (member !== null) this.#readField(name, member)
    }
    this.#out.add()
  }

  #readField(name: string, value: unknown): void {
    const { reader } = this
    const { record } = this.#out
    switch (name) {
      case 'timeUnixNano':
      case 'time_unix_nano':
        reader.uint64(value, name, record.time)
        break
      case 'observedTimeUnixNano':
      case 'observed_time_unix_nano':
        reader.uint64(value, name, record.observedTime)
        break
      case 'severityNumber':
      case 'severity_number':
        record.severityNumber = reader.enumeration(value, name, severityNumbers)
        break
      case 'severityText':
      case 'severity_text':
        record.severityText = reader.text(value, name)
        break
      case 'body':
        record.body = reader.anyValue(value, name, 0)
        break
      case 'attributes':
        record.attributes = reader.attributes(value, name)
        break
      case 'flags':
        record.flags = reader.uint32(value, name)
        break
      case 'traceId':
      case 'trace_id':
        record.traceId = reader.id(value, name, 16) ?? ''
        break
      case 'spanId':
      case 'span_id':
        record.spanId = reader.id(value, name, 8) ?? ''
        break
      case 'eventName':
      case 'event_name':
        record.eventName = reader.text(value, name)
        break
    }
  }
}
