// An OTLP export request while it is built. Rows are appended as bytes to the writer of their resource and
// group (a metric, or the one scope of logs and spans), and only `finish` wraps them into Resource...,
// Scope... and Metric messages. No object is built per row, so a million rows take only seconds. Field
// numbers are those of opentelemetry-proto 1.x (https://github.com/open-telemetry/opentelemetry-proto), named
// where they are used. Rows of a group keep the order in which they were appended.

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

/** A resource, encoded once. Two rows share a resource only if they use this same object. */
export interface Resource {
  readonly bytes: Uint8Array
}

/** The message around a group of rows inside their scope. */
export interface Group {
  wrap(writer: BinaryWriter, rows: Uint8Array): void
}

/** Spans and log records are directly in their scope. */
export const scopeGroup: Group = {
  wrap(writer, rows) {
    writer.raw(rows)
  },
}

export interface Batch {
  readonly rows: number
  /**
   * Returns the writer for the next row of the group, and counts that row. The row must be written completely
   * before the next call.
   */
  row(resource: Resource, group: Group): BinaryWriter
  /** Returns the body of all rows so far and empties the batch. Undefined when there are no rows. */
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

/** Returns the value of `key`; a missing one is created and stored. */
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
 * Attributes as repeated KeyValue in `field`; integers are written as int_value, other numbers as
 * double_value.
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

/** Writes an id of 32-bit words as a bytes field. Ids are opaque, so the order of words does not matter. */
export function writeId(writer: BinaryWriter, field: number, words: readonly number[]): void {
  writer.uint32(lengthField(field)).uint32(4 * words.length)
  for (const word of words) writer.fixed32(word)
}
