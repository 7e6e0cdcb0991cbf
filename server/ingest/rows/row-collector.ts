// Collects the result of a request while it is read: rows by table in the engine's format, counts of refused
// records with reasons, and the resource and scope of the current record. Both encodings write into it, so
// everything that decides the content of a row is here, and encodings differ only in how bytes are read. What
// the rows of a scope share, placement and tenant first, is written once and copied. A record is read to its
// end before the first byte of its row is written, so a rejected one leaves nothing.

import type { TenantPlace } from '../../telemetry/engine.ts'
import { RowBinary } from '../../telemetry/row-binary.ts'
import { markLength, type RowBatch, rowMemory, type TableRows } from '../../telemetry/rows.ts'
import { insertColumns } from '../../telemetry/schema/create-schema.ts'
import { SeriesId, seriesParts } from '../../telemetry/schema/series-id.ts'
import { type Signal, type TableName, tables } from '../../telemetry/schema/tables.ts'
import { MapCell, TextCell } from './cells.ts'
import {
  endOfTimeNs,
  type Fault,
  fault,
  faultReasons,
  maxAttributes,
  maxKeyLength,
  maxListLength,
  maxTextLength,
  noFault,
} from './faults.ts'
import { RecordLocation } from './otlp-decode-error.ts'
import { RowBytes } from './row-bytes.ts'
import { Uint64 } from './uint64.ts'

/** The result of decoding one request. */
export interface DecodedExport {
  /** Tables with at least one row, each with its event-time bounds; empty where nothing was accepted. */
  readonly batch: RowBatch
  /** Data points, log records or spans in `batch`. */
  readonly accepted: number
  /** Number of records that were left out; OTLP calls them rejected in a partial success. */
  readonly rejected: number
  /**
   * Counts by reason, `2 points: time is 0; 1 point: point has no value`; empty where nothing was rejected.
   */
  readonly reasons: string
}

class Resource {
  readonly attributes = new MapCell()
  readonly schemaUrl = new TextCell()
  fault: Fault = noFault

  clear(): void {
    this.attributes.clear()
    this.schemaUrl.clear()
    this.fault = noFault
  }
}

class Scope {
  readonly name = new TextCell()
  readonly version = new TextCell()
  readonly attributes = new MapCell()
  readonly schemaUrl = new TextCell()
  droppedAttributesCount = 0
  fault: Fault = noFault

  clear(): void {
    this.name.clear()
    this.version.clear()
    this.attributes.clear()
    this.schemaUrl.clear()
    this.droppedAttributesCount = 0
    this.fault = noFault
  }
}

/**
 * Memory for rows before their size is known. One request after the other uses it, and it is filled with
 * zeros in between: nothing of one organisation may remain after its erasure or be seen by another.
 */
const scratch: RowBinary[] = []

/** As many as one request may need. */
const scratchCount = tables.length

/** Larger memory is freed. */
const scratchBytes = 8 * 1024 * 1024

/** Rows of one table while they are written. */
class OpenTable {
  readonly table: TableName
  readonly rows = scratch.pop() ?? new RowBinary()
  readonly minTime = new Uint64()
  readonly maxTime = new Uint64()
  #marks = new Uint32Array(64 * markLength)
  #marked = 0

  constructor(table: TableName) {
    this.table = table
    this.minTime.setBigInt(2n ** 64n - 1n)
  }

  /** Ends the current row. */
  mark(time: Uint64): void {
    if (this.#marked === this.#marks.length) {
      const more = new Uint32Array(this.#marked * 2)
      more.set(this.#marks)
      this.#marks = more
    }
    this.#marks[this.#marked] = this.rows.length
    this.#marks[this.#marked + 1] = time.hi
    this.#marks[this.#marked + 2] = time.lo
    this.#marked += markLength
    if (time.isBelow(this.minTime)) this.minTime.copy(time)
    if (this.maxTime.isBelow(time)) this.maxTime.copy(time)
  }

  finish(place: TenantPlace): TableRows {
    return {
      table: this.table,
      place,
      bytes: this.#takeRows(),
      marks: this.#marks.subarray(0, this.#marked),
      minTimeNs: this.minTime.toBigInt(),
      maxTimeNs: this.maxTime.toBigInt(),
    }
  }

  #takeRows(): Buffer {
    const bytes = this.rows.toBuffer(rowMemory)
    if (bytes.length <= scratchBytes && scratch.length < scratchCount) {
      this.rows.wipe()
      scratch.push(this.rows)
    }
    return bytes
  }
}

/** What differs between the signals outside of records. */
export interface SignalShape {
  readonly signal: Signal
  /** Names of resources, scopes and records in OTLP/JSON, for the location in errors. */
  readonly names: readonly [string, string, string]
  /** Singular of what is counted, as in the reasons. */
  readonly noun: string
}

/** The source and the owner of rows. */
export interface RowOrigin {
  readonly place: TenantPlace
  /** The body that text cells of a protobuf request refer to. */
  readonly body: Buffer
  /** Bytes of rows above which decoding stops with ManyRowBytes; absent: none. */
  readonly rowBytesMax?: number | undefined
}

const sharedColumnNames = [
  'ResourceAttributesPairs',
  'ResourceSchemaUrl',
  'ServiceName',
  'ScopeName',
  'ScopeVersion',
  'ScopeAttributesPairs',
  'ScopeDroppedAttrCount',
  'ScopeSchemaUrl',
] as const

type SharedColumn = (typeof sharedColumnNames)[number]

/**
 * The shared columns in insert order, in which they follow placement and tenant in all tables of a signal.
 */
function sharedColumnsOf(signal: Signal): readonly SharedColumn[] {
  const table = tables.find((one) => one.signal === signal)
  const names = table === undefined ? [] : insertColumns(table).map(({ name }) => name)
  return names.flatMap((name) => sharedColumnNames.find((shared) => shared === name) ?? [])
}

const sharedColumns: Readonly<Record<Signal, readonly SharedColumn[]>> = {
  metrics: sharedColumnsOf('metrics'),
  logs: sharedColumnsOf('logs'),
  traces: sharedColumnsOf('traces'),
}

const endOfTime = new Uint64()
endOfTime.setBigInt(endOfTimeNs)

export class RowCollector {
  readonly location: RecordLocation
  readonly resource = new Resource()
  readonly scope = new Scope()
  readonly body: Buffer
  readonly bytes: RowBytes
  /** What resource and scope add to the identity of the scope's series; for metrics. */
  readonly scopeSeries = new SeriesId()
  /** The worst fault of what is being read: readers lower it, {@link takeFault} returns it. */
  fault: Fault = noFault
  readonly #origin: RowOrigin
  readonly #shape: SignalShape
  /**
   * The bytes that all rows of the current scope begin with. Written with the first row, because a body may
   * have a million scopes without records and a resource of megabytes that would be copied for each.
   */
  readonly #prefix = new RowBinary()
  #prefixBytes: Uint8Array = Buffer.alloc(0)
  /**
   * What the resource adds to the identity of its series. Hashed once, because there may be many scopes and
   * resources may be large.
   */
  readonly #resourceSeries = new SeriesId()
  readonly #tables = new Map<TableName, OpenTable>()
  readonly #rejections = new Map<Fault, number>()
  #open: OpenTable | null = null
  #rowStart = 0
  #accepted = 0
  #rejected = 0

  constructor(shape: SignalShape, origin: RowOrigin) {
    this.location = new RecordLocation(shape.names)
    this.body = origin.body
    this.#origin = origin
    this.#shape = shape
    this.bytes = new RowBytes(origin.rowBytesMax, origin.body.length)
  }

  note(found: Fault): void {
    if (found < this.fault) this.fault = found
  }

  takeFault(): Fault {
    const taken = this.fault
    this.fault = noFault
    return taken
  }

  /** Call it after the resource's own fields and before its first record. */
  finishResource(): void {
    this.noteLongText(this.resource.schemaUrl)
    this.resource.fault = this.takeFault()
    if (this.#shape.signal === 'metrics' && this.resource.fault === noFault) this.#identifyResource()
  }

  /**
   * Call it after the scope's own fields and before its first record. A scope inherits the fault of its
   * resource.
   */
  finishScope(): void {
    this.noteLongText(this.scope.name)
    this.noteLongText(this.scope.version)
    this.noteLongText(this.scope.schemaUrl)
    this.scope.fault = Math.min(this.takeFault(), this.resource.fault)
    this.#prefix.clear()
    if (this.#shape.signal === 'metrics' && this.scope.fault === noFault) this.#identifyScope()
  }

  noteManyAttributes(count: number): void {
    if (count > maxAttributes) this.note(fault.tooManyAttributes)
  }

  noteLongAttribute(key: TextCell, value: TextCell): void {
    if (key.isLongerThan(maxKeyLength, this.body)) this.note(fault.keyTooLong)
    if (value.isLongerThan(maxTextLength, this.body)) this.note(fault.valueTooLong)
  }

  noteLongText(text: TextCell): void {
    if (text.isLongerThan(maxTextLength, this.body)) this.note(fault.textTooLong)
  }

  noteLongList(length: number): void {
    if (length > maxListLength) this.note(fault.listTooLong)
  }

  /** Notes `outside` for a time that the engine can't store. */
  noteTime(time: Uint64, outside: Fault): void {
    if (!time.isBelow(endOfTime)) this.note(outside)
  }

  /** {@link noteTime} for the record's own time, which must be set. */
  noteEventTime(time: Uint64): void {
    if (time.isZero()) this.note(fault.timeIsZero)
    this.noteTime(time, fault.timeOutside)
  }

  /**
   * Ends the reading of a record. Returns null and counts it as rejected where a fault was noted since the
   * last record, or is `inherited`. Otherwise begins its row with what the scope's rows share; the caller
   * writes the rest in the order of the table's insert columns and calls {@link finishRow}.
   */
  startRow(table: TableName, inherited: Fault): RowBinary | null {
    const found = Math.min(this.takeFault(), inherited)
    if (found !== noFault) {
      this.#reject(found)
      return null
    }
    const open = this.#tables.get(table) ?? this.#openTable(table)
    this.#open = open
    this.#rowStart = open.rows.length
    if (this.#prefix.length === 0) this.#writePrefix()
    open.rows.appendBytes(this.#prefixBytes)
    return open.rows
  }

  /** @param time the event time in the row */
  finishRow(time: Uint64): void {
    const open = this.#open
    if (open === null) throw new Error('No row was begun.')
    open.mark(time)
    this.#accepted++
    this.bytes.addRow(open.rows.length - this.#rowStart)
  }

  finish(): DecodedExport {
    const batch = [...this.#tables.values()].map((open) => open.finish(this.#origin.place))
    return { batch, accepted: this.#accepted, rejected: this.#rejected, reasons: this.#reasons() }
  }

  #openTable(table: TableName): OpenTable {
    const open = new OpenTable(table)
    this.#tables.set(table, open)
    return open
  }

  #writePrefix(): void {
    const { tenantId, placement } = this.#origin.place
    const out = this.#prefix
    out.uint16(placement)
    out.text(tenantId)
    for (const column of sharedColumns[this.#shape.signal]) this.#writeShared(column, out)
    this.#prefixBytes = out.written()
  }

  #identifyResource(): void {
    const { attributes } = this.resource
    const series = this.#resourceSeries
    series.clear()
    attributes.addTo(series, seriesParts.resource)
    const service = new RowBinary()
    attributes.writeValueTo(service, 'service.name')
    series.addText(service, 0, service.length, seriesParts.service)
  }

  #identifyScope(): void {
    this.scopeSeries.copy(this.#resourceSeries)
    const name = new RowBinary()
    this.scope.name.writeTo(name, this.body)
    this.scopeSeries.addText(name, 0, name.length, seriesParts.scope)
  }

  #writeShared(column: SharedColumn, out: RowBinary): void {
    const { resource, scope, body } = this
    switch (column) {
      case 'ResourceAttributesPairs':
        resource.attributes.writeTo(out)
        break
      case 'ResourceSchemaUrl':
        resource.schemaUrl.writeTo(out, body)
        break
      case 'ServiceName':
        resource.attributes.writeValueTo(out, 'service.name')
        break
      case 'ScopeName':
        scope.name.writeTo(out, body)
        break
      case 'ScopeVersion':
        scope.version.writeTo(out, body)
        break
      case 'ScopeAttributesPairs':
        scope.attributes.writeTo(out)
        break
      case 'ScopeDroppedAttrCount':
        out.uint32(scope.droppedAttributesCount)
        break
      case 'ScopeSchemaUrl':
        scope.schemaUrl.writeTo(out, body)
        break
    }
  }

  #reject(found: Fault): void {
    this.#rejected++
    this.#rejections.set(found, (this.#rejections.get(found) ?? 0) + 1)
  }

  #reasons(): string {
    const found = [...this.#rejections].sort(([a], [b]) => a - b)
    return found
      .map(([kind, count]) => `${count} ${this.#shape.noun}${count === 1 ? '' : 's'}: ${faultReasons[kind]}`)
      .join('; ')
  }
}
