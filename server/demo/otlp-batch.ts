// One OTLP export request in the making. Rows are appended as bytes to the writer of their resource and group
// (a metric, or the one scope of logs and spans), and only `finish` wraps them into Resource..., Scope... and
// Metric messages: no object is built per row, which is what makes a million rows a matter of seconds. Field
// numbers are those of opentelemetry-proto 1.x (https://github.com/open-telemetry/opentelemetry-proto), named
// where they are used. Rows of a group stay in the order in which they were appended.

import { BinaryWriter } from '@bufbuild/protobuf/wire'
import type { Signal } from '../telemetry/schema/tables.ts'
import type { Attributes } from './call-graph.ts'

const schemaUrl = 'https://opentelemetry.io/schemas/1.37.0'

/** Protobuf field tags: a varint, a fixed 32 or 64 bit number, or something with a length. */
export const varintField = (field: number): number => field << 3
export const fixed64Field = (field: number): number => (field << 3) | 1
export const lengthField = (field: number): number => (field << 3) | 2
export const fixed32Field = (field: number): number => (field << 3) | 5

/** An export request body of one signal, uncompressed protobuf. */
export interface Payload {
  readonly signal: Signal
  /** Spans, log records or data points in it; at least 1. */
  readonly rows: number
  readonly body: Uint8Array<ArrayBuffer>
}

/** A resource, encoded once. Two rows share a resource only when they share this very object. */
export interface Resource {
  readonly bytes: Uint8Array
}

/** What stands around a group of rows inside their scope. */
export interface Group {
  wrap(writer: BinaryWriter, rows: Uint8Array): void
}

/** Spans and log records stand in their scope directly. */
export const scopeGroup: Group = {
  wrap(writer, rows) {
    writer.raw(rows)
  },
}

export interface Batch {
  readonly rows: number
  /**
   * The writer that takes the next row of the group; counts that row. The row must be written
   * whole before the next call.
   */
  row(resource: Resource, group: Group): BinaryWriter
  /** The body of all rows so far; the batch is empty again. Undefined when there is none. */
  finish(): Payload | undefined
}

export function openBatch(signal: Signal, scope: { readonly name: string; readonly version: string }): Batch {
  const scopeBytes = new BinaryWriter()
    .uint32(lengthField(1))
    .string(scope.name)
    .uint32(lengthField(2))
    .string(scope.version)
    .finish()
  const groups = new Map<Resource, Map<Group, BinaryWriter>>()
  let rows = 0
  return {
    get rows() {
      return rows
    },
    row(resource, group) {
      rows++
      const ofResource = getOrInsert(groups, resource, () => new Map<Group, BinaryWriter>())
      return getOrInsert(ofResource, group, () => new BinaryWriter())
    },
    finish() {
      if (rows === 0) return undefined
      const body = wrapGroups(groups, scopeBytes)
      const payload: Payload = { signal, rows, body }
      groups.clear()
      rows = 0
      return payload
    },
  }
}

/** The value of `key`, made and kept when it is missing. */
export function getOrInsert<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = make()
  map.set(key, made)
  return made
}

/**
 * The three export requests have one shape: repeated { resource = 1, scopes = 2 { scope = 1, ...
 * }, schema_url = 3 } = 1.
 */
function wrapGroups(
  groups: ReadonlyMap<Resource, ReadonlyMap<Group, BinaryWriter>>,
  scopeBytes: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const writer = new BinaryWriter()
  for (const [resource, ofResource] of groups) {
    writer.uint32(lengthField(1)).fork()
    writer.uint32(lengthField(1)).bytes(resource.bytes)
    writer.uint32(lengthField(2)).fork().uint32(lengthField(1)).bytes(scopeBytes)
    for (const [group, rows] of ofResource) group.wrap(writer, rows.finish())
    writer.join().uint32(lengthField(3)).string(schemaUrl).join()
  }
  return writer.finish()
}

export function encodeResource(attributes: Attributes): Resource {
  return { bytes: encodeAttributes(1, attributes) }
}

/**
 * Attributes as repeated KeyValue in `field`; whole numbers go as int_value, other numbers as double_value.
 */
export function encodeAttributes(field: number, attributes: Attributes): Uint8Array {
  const writer = new BinaryWriter()
  writeAttributes(writer, field, attributes)
  return writer.finish()
}

/** Appends attributes as repeated KeyValue { key = 1, value = 2 } in `field`. */
export function writeAttributes(writer: BinaryWriter, field: number, attributes: Attributes): void {
  for (const [key, value] of Object.entries(attributes)) {
    writer.uint32(lengthField(field)).fork()
    writer.uint32(lengthField(1)).string(key)
    writer.uint32(lengthField(2)).fork()
    if (typeof value === 'string') writer.uint32(lengthField(1)).string(value)
    else if (Number.isSafeInteger(value)) writer.uint32(varintField(3)).int64(value)
    else writer.uint32(fixed64Field(4)).double(value)
    writer.join().join()
  }
}

/**
 * An instant as the high and low 32 bits of its nanoseconds, so that offsets can be added
 * without bigint arithmetic.
 */
export interface Instant {
  readonly high: number
  readonly low: number
}

export function instantOf(timeNs: bigint): Instant {
  return { high: Number(timeNs >> 32n), low: Number(timeNs & 0xffffffffn) }
}

/** Writes a fixed64 nanosecond field of value `base + offsetNs`; `offsetNs` is a whole number, 0 to 2^52. */
export function writeInstant(writer: BinaryWriter, field: number, base: Instant, offsetNs: number): void {
  const low = base.low + offsetNs
  writer
    .uint32(fixed64Field(field))
    .fixed32(low % 4294967296)
    .fixed32(base.high + Math.floor(low / 4294967296))
}

/** Writes a fixed64 count, 0 to 2^53. */
export function writeFixedCount(writer: BinaryWriter, count: number): void {
  writer.fixed32(count % 4294967296).fixed32(Math.floor(count / 4294967296))
}

/**
 * Writes an id of 32-bit words as a bytes field; an id travels whole, so its words' order is ours to choose.
 */
export function writeId(writer: BinaryWriter, field: number, words: readonly number[]): void {
  writer.uint32(lengthField(field)).uint32(4 * words.length)
  for (const word of words) writer.fixed32(word)
}
