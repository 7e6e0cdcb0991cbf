// OTLP logs in both encodings. The time of a record is that of the event, or else of its observation, or else
// of the HTTP request: a log without any time is still evidence. A time that is set and can't be stored is
// refused and not replaced. Ids of a wrong length become '', because the record is useful without them.

import type { RowBinary } from '../../telemetry/row-binary.ts'
import { IdCell, MapCell, TextCell } from '../rows/cells.ts'
import { fault, maxBodyLength } from '../rows/faults.ts'
import { type DecodedExport, RowCollector, type RowOrigin, type SignalShape } from '../rows/row-collector.ts'
import { Uint64 } from '../rows/uint64.ts'
import {
  type EnumNames,
  JsonReader,
  type JsonRecordReader,
  type OuterNames,
  parseJson,
  readJsonRequest,
} from './json-reader.ts'
import { readAnyValue, readAttribute } from './proto-attributes.ts'
import { ProtoReader } from './proto-reader.ts'
import { type ProtoRecordReader, readProtoRequest } from './proto-request.ts'

const names: OuterNames = {
  resources: ['resourceLogs', 'resource_logs'],
  scopes: ['scopeLogs', 'scope_logs'],
  records: ['logRecords', 'log_records'],
}

const severityLevels = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'] as const

/** `SEVERITY_NUMBER_TRACE` = 1, `..._TRACE2` = 2 and so on, four numbers for each level. */
const severityNumbers: EnumNames = new Map([
  ['SEVERITY_NUMBER_UNSPECIFIED', 0],
  ...severityLevels.flatMap((level, at) =>
    ['', '2', '3', '4'].map((step, offset): [string, number] => [
      `SEVERITY_NUMBER_${level}${step}`,
      at * 4 + offset + 1,
    ]),
  ),
])

const shape: SignalShape = {
  signal: 'logs',
  names: [names.resources[0], names.scopes[0], names.records[0]],
  noun: 'log record',
}

/**
 * Reads an `ExportLogsServiceRequest`.
 *
 * @throws OtlpDecodeError
 */
export function decodeLogsProto(origin: RowOrigin, receivedNs: bigint): DecodedExport {
  const rows = new RowCollector(shape, origin)
  const logs = new LogProto(new ProtoReader(origin.body, rows), new LogRows(rows, receivedNs))
  readProtoRequest(logs.reader, logs)
  return rows.finish()
}

/**
 * Reads an `ExportLogsServiceRequest`.
 *
 * @throws OtlpDecodeError
 */
export function decodeLogsJson(origin: RowOrigin, receivedNs: bigint): DecodedExport {
  const rows = new RowCollector(shape, origin)
  const logs = new LogJson(new JsonReader(rows), new LogRows(rows, receivedNs))
  readJsonRequest(logs.reader, parseJson(origin.body), names, logs)
  return rows.finish()
}

class LogRecord {
  readonly time = new Uint64()
  readonly observedTime = new Uint64()
  severityNumber = 0
  readonly severityText = new TextCell()
  readonly body = new TextCell()
  readonly attributes = new MapCell()
  flags = 0
  readonly traceId = new IdCell()
  readonly spanId = new IdCell()
  readonly eventName = new TextCell()

  clear(): void {
    this.time.clear()
    this.observedTime.clear()
    this.severityNumber = 0
    this.severityText.clear()
    this.body.clear()
    this.attributes.clear()
    this.flags = 0
    this.traceId.clear()
    this.spanId.clear()
    this.eventName.clear()
  }
}

/** Writes records as rows of the collector; {@link record} is reused for each. */
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
    const time = this.#time()
    rows.noteLongText(record.severityText)
    rows.noteLongText(record.eventName)
    if (record.body.isLongerThan(maxBodyLength, rows.body)) rows.note(fault.bodyTooLong)
    if (record.severityNumber < 0 || record.severityNumber > 255) rows.note(fault.severity)
    rows.noteEventTime(time)
    const out = rows.startRow('otel_logs', rows.scope.fault)
    if (out === null) return
    out.uint64(time.hi, time.lo)
    this.#write(out)
    rows.finishRow(time)
  }

  #time(): Uint64 {
    if (!this.record.time.isZero()) return this.record.time
    return this.record.observedTime.isZero() ? this.#receivedTime : this.record.observedTime
  }

  #write(out: RowBinary): void {
    const { record } = this
    const { body } = this.rows
    record.traceId.writeTo(out)
    record.spanId.writeTo(out)
    out.uint8(record.flags & 0xff)
    record.severityText.writeTo(out, body)
    out.uint8(record.severityNumber)
    record.body.writeTo(out, body)
    record.attributes.writeTo(out)
    record.eventName.writeTo(out, body)
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
          record.severityNumber = reader.int32()
          break
        case (3 << 3) | 2: // severity_text
          reader.text(end, record.severityText)
          break
        case (5 << 3) | 2: // body
          readAnyValue(reader, reader.enter(end), record.body)
          break
        case (6 << 3) | 2: // attributes
          readAttribute(reader, end, record.attributes)
          attributeCount++
          break
        case (8 << 3) | 5: // flags
          record.flags = reader.fixed32()
          break
        case (9 << 3) | 2: // trace_id
          reader.id(end, 16, record.traceId)
          break
        case (10 << 3) | 2: // span_id
          reader.id(end, 8, record.spanId)
          break
        case (11 << 3) | 1: // observed_time_unix_nano
          reader.fixed64(record.observedTime)
          break
        case (12 << 3) | 2: // event_name
          reader.text(end, record.eventName)
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
        reader.text(value, name, record.severityText)
        break
      case 'body':
        record.body.setText(reader.anyValue(value, name, 0))
        break
      case 'attributes':
        reader.attributes(value, name, record.attributes)
        break
      case 'flags':
        record.flags = reader.uint32(value, name)
        break
      case 'traceId':
      case 'trace_id':
        reader.id(value, name, 16, record.traceId)
        break
      case 'spanId':
      case 'span_id':
        reader.id(value, name, 8, record.spanId)
        break
      case 'eventName':
      case 'event_name':
        reader.text(value, name, record.eventName)
        break
    }
  }
}
