// What a request turns into while it is read: rows by table, counts of what was refused and why, and the
// resource and scope that the current record belongs to. Both encodings write into it, so everything that
// decides what a row holds stands on this side and an encoding can only differ in how bytes are read. The
// attribute map of a resource or scope is one object for all its rows: the engine's encoder may rely on that
// identity.

import type { AttributeMap, Cell, Row, RowBatch, TableRows } from '../telemetry/rows.ts'
import type { TableName } from '../telemetry/schema/tables.ts'
import { noAttributes } from './attributes.ts'
import type { Place } from './otlp-decode-error.ts'
import {
  endOfTimeSeconds,
  type Fault,
  fault,
  faultReasons,
  maxAttributes,
  maxKeyLength,
  maxListLength,
  maxTextLength,
  noFault,
} from './record-fault.ts'
import { Instant, Uint64 } from './uint64.ts'

/** One request, decoded. */
export interface DecodedExport {
  /** Tables with at least one row, each with its event-time bounds; empty when nothing was accepted. */
  readonly batch: RowBatch
  /** Data points, log records or spans in `batch`. */
  readonly accepted: number
  /** Records left out one by one; what OTLP calls rejected in a partial success. */
  readonly rejected: number
  /** Counts by reason, `2 points: time is 0; 1 point: point has no value`; empty when nothing was rejected. */
  readonly reasons: string
}

export interface Resource {
  attributes: AttributeMap
  schemaUrl: string
  serviceName: string
  fault: Fault
}

export interface Scope {
  name: string
  version: string
  attributes: AttributeMap
  droppedAttributesCount: number
  schemaUrl: string
  fault: Fault
}

interface OpenTable {
  readonly table: TableName
  readonly rows: Row[]
  readonly minTime: Uint64
  readonly maxTime: Uint64
}

/** Singular of what is counted, as it stands in the reasons. */
export type RecordNoun = 'point' | 'log record' | 'span' | 'sample' | 'histogram' | 'exemplar'

export class RowCollector {
  readonly place: Place
  readonly resource: Resource = { attributes: noAttributes, schemaUrl: '', serviceName: '', fault: noFault }
  readonly scope: Scope = {
    name: '',
    version: '',
    attributes: noAttributes,
    droppedAttributesCount: 0,
    schemaUrl: '',
    fault: noFault,
  }
  /** Worst fault of what is being read; readers lower it, {@link takeFault} hands it over. */
  fault: Fault = noFault
  readonly #noun: RecordNoun
  readonly #tables = new Map<TableName, OpenTable>()
  readonly #rejections = new Map<Fault, number>()
  readonly #instant = new Instant()
  #accepted = 0
  #rejected = 0

  constructor(place: Place, noun: RecordNoun) {
    this.place = place
    this.#noun = noun
  }

  note(found: Fault): void {
    if (found < this.fault) this.fault = found
  }

  takeFault(): Fault {
    const taken = this.fault
    this.fault = noFault
    return taken
  }

  startResource(): void {
    this.resource.attributes = noAttributes
    this.resource.schemaUrl = ''
    this.resource.serviceName = ''
    this.resource.fault = noFault
  }

  /** Called when the resource's own fields are read and before its first record. */
  finishResource(): void {
    this.noteLongText(this.resource.schemaUrl)
    this.resource.serviceName = this.resource.attributes['service.name'] ?? ''
    this.resource.fault = this.takeFault()
  }

  startScope(): void {
    this.scope.name = ''
    this.scope.version = ''
    this.scope.attributes = noAttributes
    this.scope.droppedAttributesCount = 0
    this.scope.schemaUrl = ''
    this.scope.fault = noFault
  }

  /** Called when the scope's own fields are read and before its first record. A scope inherits its resource's fault. */
  finishScope(): void {
    this.noteLongText(this.scope.name)
    this.noteLongText(this.scope.version)
    this.noteLongText(this.scope.schemaUrl)
    this.scope.fault = Math.min(this.takeFault(), this.resource.fault)
  }

  noteManyAttributes(count: number): void {
    if (count > maxAttributes) this.note(fault.tooManyAttributes)
  }

  noteLongAttribute(key: string, value: string): void {
    if (key.length > maxKeyLength) this.note(fault.keyTooLong)
    if (value.length > maxTextLength) this.note(fault.valueTooLong)
  }

  noteLongText(text: string): void {
    if (text.length > maxTextLength) this.note(fault.textTooLong)
  }

  noteLongList(length: number): void {
    if (length > maxListLength) this.note(fault.listTooLong)
  }

  /** Text of an instant column. A time the engine can't hold notes `outside` and gives a text not to be stored. */
  instant(time: Uint64, outside: Fault): string {
    const instant = this.#instant.of(time)
    if (instant.seconds >= endOfTimeSeconds) this.note(outside)
    return instant.text
  }

  /** {@link instant} of the record's own time, which must be set. */
  eventTime(time: Uint64): string {
    if (time.isZero()) this.note(fault.timeIsZero)
    return this.instant(time, fault.timeOutside)
  }

  /**
   * Ends a record: adds its row, or counts it as rejected when anything noted since the last record, or
   * `inherited`, says so.
   *
   * @param time the event time in the row
   */
  add(table: TableName, row: Row, time: Uint64, inherited: Fault): void {
    const found = Math.min(this.takeFault(), inherited)
    if (found !== noFault) {
      this.#reject(found)
      return
    }
    const open = this.#tables.get(table) ?? this.#open(table, time)
    open.rows.push(row)
    if (time.isBelow(open.minTime)) open.minTime.copy(time)
    if (open.maxTime.isBelow(time)) open.maxTime.copy(time)
    this.#accepted++
  }

  finish(): DecodedExport {
    const batch: TableRows[] = []
    for (const { table, rows, minTime, maxTime } of this.#tables.values()) {
      batch.push({ table, rows, minTimeNs: minTime.toBigInt(), maxTimeNs: maxTime.toBigInt() })
    }
    return { batch, accepted: this.#accepted, rejected: this.#rejected, reasons: this.#reasons() }
  }

  #open(table: TableName, time: Uint64): OpenTable {
    const open = { table, rows: [], minTime: new Uint64(), maxTime: new Uint64() }
    open.minTime.copy(time)
    open.maxTime.copy(time)
    this.#tables.set(table, open)
    return open
  }

  #reject(found: Fault): void {
    this.#rejected++
    this.#rejections.set(found, (this.#rejections.get(found) ?? 0) + 1)
  }

  #reasons(): string {
    const found = [...this.#rejections].sort(([a], [b]) => a - b)
    return found
      .map(([kind, count]) => `${count} ${this.#noun}${count === 1 ? '' : 's'}: ${faultReasons[kind]}`)
      .join('; ')
  }
}

/** A Float64 cell: the number, or the text rows.ts asks for where JSON has no number. */
export function floatCell(value: number): Cell {
  if (Number.isFinite(value)) return value === 0 && 1 / value < 0 ? '-0' : value
  return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf'
}
