// Reads OTLP/JSON: the protobuf JSON mapping with OTLP's changes (ids in hex, enums as integers), and
// everything that the mapping accepts: snake_case names, enum names, 64-bit integers as strings or numbers,
// null for absent, unknown fields. A value of a wrong type is refused with its location. The cost of a body
// is measured before it is parsed, and integers that JSON.parse would round are kept exactly (see
// long-integers.ts).

import { excessSentence, type JsonBounds, jsonExcess } from '../../core/input/json-bounds.ts'
import { type IdCell, type MapCell, TextCell } from '../rows/cells.ts'
import { fault, maxNesting } from '../rows/faults.ts'
import { OtlpDecodeError } from '../rows/otlp-decode-error.ts'
import type { RowCollector } from '../rows/row-collector.ts'
import type { Uint64 } from '../rows/uint64.ts'
import { arrayText, doubleText, emptyText, mapText, stringText } from './attributes.ts'
import { longIntegerOf, quoteLongIntegers } from './long-integers.ts'

export type JsonObject = Readonly<Record<string, unknown>>

/** The part of a signal: reads a record and adds its rows. */
export interface JsonRecordReader {
  readRecord(record: unknown): void
}

/** Names of an enum's values, as in the protobuf files. */
export type EnumNames = ReadonlyMap<string, number>

const decimalNumber = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/
const decimalInteger = /^-?\d{1,20}$/
const base64 = /^[A-Za-z0-9+/_-]*={0,2}$/
const minInt64 = -(2n ** 63n)
const maxInt64 = 2n ** 63n - 1n

/**
 * Limits of what a body may cost to parse. A record that is nested slightly too deeply costs only itself (see
 * faults.ts); 32 levels of values are 130 levels of JSON. In an honest body each array or object takes 20
 * bytes or more, and its objects begin in a few hundred ways.
 */
function parseLimits({ length }: Buffer): JsonBounds {
  return {
    depth: 2_048,
    values: Number.POSITIVE_INFINITY,
    containers: Math.max(1_048_576, length / 16),
    shapes: 10_000,
  }
}

/**
 * Parses a body. Integers that a double may round are texts for {@link longIntegerOf}; invalid UTF-8 becomes
 * U+FFFD. Throws OtlpDecodeError where it is not JSON or costs too much to parse.
 */
export function parseJson(body: Buffer): unknown {
  const longIntegers: number[] = []
  const excess = jsonExcess(body, parseLimits(body), longIntegers)
  if (excess !== null) throw new OtlpDecodeError(`request: ${excessSentence[excess]} to be read`)
  const exact = longIntegers.length === 0 ? body : quoteLongIntegers(body, longIntegers)
  try {
    return JSON.parse(exact.toString('utf8'))
  } catch {
    throw new OtlpDecodeError('request: not valid JSON')
  }
}

/**
 * Checks and converts JSON values. `field` names the value in an error, below the location of the collector.
 */
export class JsonReader {
  readonly rows: RowCollector
  readonly #attributeKey = new TextCell()
  readonly #attributeValue = new TextCell()

  constructor(rows: RowCollector) {
    this.rows = rows
  }

  error(field: string, expected: string): OtlpDecodeError {
    return new OtlpDecodeError(
      `${this.rows.location}${field === '' ? '' : `.${field}`}: expected ${expected}`,
    )
  }

  object(value: unknown, field: string): JsonObject {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw this.error(field, 'an object')
    }
    return value as JsonObject
  }

  /** Returns an empty list where absent. */
  list(value: unknown, field: string): readonly unknown[] {
    if (value === undefined || value === null) return []
    if (!Array.isArray(value)) throw this.error(field, 'an array')
    return value
  }

  /** A lone surrogate, which UTF-8 can't represent, becomes U+FFFD. */
  string(value: unknown, field: string): string {
    if (typeof value !== 'string' || longIntegerOf(value) !== null) throw this.error(field, 'a string')
    return value.toWellFormed()
  }

  text(value: unknown, field: string, into: TextCell): void {
    into.setText(this.string(value, field))
  }

  boolean(value: unknown, field: string): boolean {
    if (typeof value !== 'boolean') throw this.error(field, 'true or false')
    return value
  }

  double(value: unknown, field: string): number {
    const number = toDouble(value)
    if (number === undefined) throw this.error(field, 'a number')
    return number
  }

  uint64(value: unknown, field: string, into: Uint64): void {
    const read =
      typeof value === 'string'
        ? into.setDecimal(longIntegerOf(value) ?? value)
        : typeof value === 'number' && Number.isSafeInteger(value) && into.setDecimal(String(value))
    if (!read) throw this.error(field, 'an integer from 0 to 18446744073709551615')
  }

  /**
   * Returns the decimal digits of a signed 64-bit integer. An unquoted integer outside that range is read as
   * a double: the JavaScript SDK writes every integral number as an integer, also 1e20.
   */
  int64Text(value: unknown, field: string, nested: boolean): string {
    if (typeof value === 'number' && Number.isInteger(value)) return integralText(value, nested)
    const long = longIntegerOf(value)
    if (long !== null) return isInt64(BigInt(long)) ? long : doubleText(Number(long), nested)
    if (typeof value === 'string' && decimalInteger.test(value)) {
      const integer = BigInt(value)
      if (isInt64(integer)) return String(integer)
    }
    throw this.error(field, 'a signed 64-bit integer')
  }

  int32(value: unknown, field: string): number {
    const number = toInteger(value)
    if (number === undefined || number !== (number | 0)) throw this.error(field, 'a signed 32-bit integer')
    return number
  }

  uint32(value: unknown, field: string): number {
    const number = toInteger(value)
    if (number === undefined || number !== number >>> 0) throw this.error(field, 'an unsigned 32-bit integer')
    return number
  }

  /** Reads an enum as integer or by name. An integer without a name is accepted: enums are open. */
  enumeration(value: unknown, field: string, names: EnumNames): number {
    if (typeof value === 'number') return this.int32(value, field)
    const number = typeof value === 'string' ? names.get(value) : undefined
    if (number === undefined) throw this.error(field, `an integer or one of ${[...names.keys()].join(', ')}`)
    return number
  }

  id(value: unknown, field: string, byteCount: number, into: IdCell): void {
    into.setHex(this.string(value, field), byteCount)
  }

  /** Reads base64 in either alphabet, with or without padding; returns its standard form. */
  base64(value: unknown, field: string): string {
    const text = this.string(value, field)
    if (!base64.test(text)) throw this.error(field, 'base64')
    return Buffer.from(text, 'base64').toString('base64')
  }

  /** Reads an attribute list into a map. */
  attributes(value: unknown, field: string, into: MapCell): void {
    const list = this.list(value, field)
    into.clear()
    this.rows.noteManyAttributes(list.length)
    for (const item of list) this.#attribute(this.object(item, field), field, into)
  }

  #attribute(item: JsonObject, field: string, into: MapCell): void {
    this.#attributeKey.setText(this.#key(item, field))
    this.#attributeValue.setText(this.anyValue(item.value, field, 0))
    this.rows.noteLongAttribute(this.#attributeKey, this.#attributeValue)
    into.add(this.#attributeKey, this.#attributeValue, this.rows.body)
  }

  #key(item: JsonObject, field: string): string {
    const key = item.key ?? ''
    return this.string(key, `${field}.key`)
  }

  /**
   * Returns the text of an `AnyValue`; the empty value where nothing is set.
   *
   * @param depth number of arrays and maps around it; inside one the text is JSON
   */
  anyValue(value: unknown, field: string, depth: number): string {
    const nested = depth > 0
    if (value === undefined || value === null) return emptyText(nested)
    const anyValue = this.object(value, field)
    let text = emptyText(nested)
    for (const name in anyValue) {
      const member = anyValue[name]
      if (member !== null) text = this.#anyMember(name, member, field, depth) ?? text
    }
    return text
  }

  #anyMember(name: string, member: unknown, field: string, depth: number): string | undefined {
    const nested = depth > 0
    switch (name) {
      case 'stringValue':
      case 'string_value':
        return stringText(this.string(member, `${field}.stringValue`), nested)
      case 'boolValue':
      case 'bool_value':
        return this.boolean(member, `${field}.boolValue`) ? 'true' : 'false'
      case 'intValue':
      case 'int_value':
        return this.int64Text(member, `${field}.intValue`, nested)
      case 'doubleValue':
      case 'double_value':
        return doubleText(this.double(member, `${field}.doubleValue`), nested)
      case 'bytesValue':
      case 'bytes_value':
        return stringText(this.base64(member, `${field}.bytesValue`), nested)
      case 'arrayValue':
      case 'array_value':
        return this.#array(this.object(member, field).values, field, depth + 1)
      case 'kvlistValue':
      case 'kvlist_value':
        return this.#map(this.object(member, field).values, field, depth + 1)
      default:
        return undefined
    }
  }

  #array(values: unknown, field: string, depth: number): string {
    if (depth > maxNesting) return this.#tooDeep()
    const items: string[] = []
    for (const item of this.list(values, field)) items.push(this.anyValue(item, field, depth))
    return arrayText(items)
  }

  #map(values: unknown, field: string, depth: number): string {
    if (depth > maxNesting) return this.#tooDeep()
    const entries = new Map<string, string>()
    for (const value of this.list(values, field)) {
      const item = this.object(value, field)
      entries.set(this.#key(item, field), this.anyValue(item.value, field, depth))
    }
    return mapText(entries)
  }

  #tooDeep(): string {
    this.rows.note(fault.nestedTooDeep)
    return 'null'
  }
}

/** Returns a field by its JSON name or its protobuf name. */
export function field(object: JsonObject, name: string, protoName: string): unknown {
  return object[name] ?? object[protoName]
}

/** JSON names of a signal's outer messages, each in camelCase and in snake_case. */
export interface OuterNames {
  readonly resources: readonly [string, string]
  readonly scopes: readonly [string, string]
  readonly records: readonly [string, string]
}

/** Reads an `Export<Signal>ServiceRequest`. */
export function readJsonRequest(
  reader: JsonReader,
  request: unknown,
  names: OuterNames,
  records: JsonRecordReader,
): void {
  const { location } = reader.rows
  const groups = reader.list(field(reader.object(request, ''), ...names.resources), names.resources[0])
  for (const group of groups) {
    location.resource++
    location.scope = -1
    readResourceGroup(reader, reader.object(group, ''), names, records)
  }
}

function readResourceGroup(
  reader: JsonReader,
  group: JsonObject,
  names: OuterNames,
  records: JsonRecordReader,
): void {
  const { rows } = reader
  rows.resource.clear()
  if (group.resource !== undefined && group.resource !== null) {
    const own = reader.object(group.resource, 'resource')
    reader.attributes(own.attributes, 'resource.attributes', rows.resource.attributes)
  }
  reader.text(field(group, 'schemaUrl', 'schema_url') ?? '', 'schemaUrl', rows.resource.schemaUrl)
  rows.finishResource()
  for (const scopeGroup of reader.list(field(group, ...names.scopes), names.scopes[0])) {
    rows.location.scope++
    rows.location.record = -1
    readScopeGroup(reader, reader.object(scopeGroup, ''), names, records)
    rows.location.record = -1
  }
  rows.location.scope = -1
}

function readScopeGroup(
  reader: JsonReader,
  group: JsonObject,
  names: OuterNames,
  records: JsonRecordReader,
): void {
  const { rows } = reader
  rows.scope.clear()
  if (group.scope !== undefined && group.scope !== null) {
    readScope(reader, reader.object(group.scope, 'scope'))
  }
  reader.text(field(group, 'schemaUrl', 'schema_url') ?? '', 'schemaUrl', rows.scope.schemaUrl)
  rows.finishScope()
  for (const record of reader.list(field(group, ...names.records), names.records[0])) {
    rows.location.record++
    records.readRecord(record)
  }
}

function readScope(reader: JsonReader, own: JsonObject): void {
  const { scope } = reader.rows
  const dropped = field(own, 'droppedAttributesCount', 'dropped_attributes_count')
  reader.text(own.name ?? '', 'scope.name', scope.name)
  reader.text(own.version ?? '', 'scope.version', scope.version)
  reader.attributes(own.attributes, 'scope.attributes', scope.attributes)
  scope.droppedAttributesCount = reader.uint32(dropped ?? 0, 'scope.droppedAttributesCount')
}

function toDouble(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  if (typeof value !== 'string') return undefined
  const long = longIntegerOf(value)
  if (long !== null) return Number(long)
  if (value === 'NaN') return Number.NaN
  if (value === 'Infinity') return Number.POSITIVE_INFINITY
  if (value === '-Infinity') return Number.NEGATIVE_INFINITY
  if (!decimalNumber.test(value)) return undefined
  const number = Number(value)
  return Number.isFinite(number) ? number : undefined
}

/** @returns an integral number, possibly outside every integer type, or undefined */
function toInteger(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isInteger(value) ? value + 0 : undefined
  return typeof value === 'string' && decimalInteger.test(value) ? Number(value) : undefined
}

function integralText(value: number, nested: boolean): string {
  if (Number.isSafeInteger(value)) return String(value)
  const integer = BigInt(value)
  return isInt64(integer) ? String(integer) : doubleText(value, nested)
}

function isInt64(value: bigint): boolean {
  return value >= minInt64 && value <= maxInt64
}
