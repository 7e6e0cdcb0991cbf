// A second decoder of OTLP protobuf, to compare the product's own decoder with: it walks the official
// messages by reflection, reads numbers with @bufbuild/protobuf, builds the object tree that the product
// avoids and returns it in OTLP/JSON form. It makes the same decisions as the product and shares none of its
// code: a field with a wrong wire type is refused, fields that no row stores are skipped like unknown ones,
// repeated messages are merged (but of several values the last one counts, and data of a metric that another
// kind replaces is not checked), invalid UTF-8 becomes U+FFFD, and nothing is read below 32 nested values.

import { BinaryReader } from '@bufbuild/protobuf/wire'
import type { Field, Type } from 'protobufjs'
import type { Signal } from '../../server/telemetry/schema/tables.ts'
import { requestType } from './otlp-messages.ts'

type Message = Record<string, unknown>

/** One message of a metric's data. */
interface Part {
  readonly field: Field
  readonly bytes: Uint8Array
}

/** Official fields that no row stores. */
const unread = new Set([
  'Resource.droppedAttributesCount',
  'Metric.metadata',
  'ExponentialHistogramDataPoint.zeroThreshold',
  'LogRecord.droppedAttributesCount',
  'Span.flags',
  'Span.droppedAttributesCount',
  'Span.droppedEventsCount',
  'Span.droppedLinksCount',
  'Event.droppedAttributesCount',
  'Link.droppedAttributesCount',
  'Link.flags',
])

const idNames = new Set(['traceId', 'spanId', 'parentSpanId'])
const deepest = 32
const groupsMax = 100

/** The request in OTLP/JSON form, or null where it must be refused. */
export function referenceDecode(signal: Signal, body: Uint8Array): object | null {
  try {
    return readMessage(requestType(signal), body, {}, 0)
  } catch (error) {
    if (error instanceof Error && error.constructor !== TypeError) return null
    throw error
  }
}

function readMessage(type: Type, bytes: Uint8Array, into: Message, depth: number): Message {
  const reader = new BinaryReader(bytes)
  let data: Part[] = []
  while (reader.pos < reader.len) {
    const [number, wireType] = readTag(reader)
    const field = type.fieldsById[number]
    if (field === undefined || unread.has(`${type.name}.${field.name}`)) skip(reader, number, wireType, 0)
    else if (field.partOf?.name === 'data' && wireType === 2) {
      data = [...data.filter((part) => part.field === field), { field, bytes: reader.bytes() }]
    } else readField(reader, field, wireType, into, depth)
  }
  for (const { field, bytes: part } of data) {
    into[field.name] = readMessage(
      field.resolvedType as Type,
      part,
      (into[field.name] as Message) ?? {},
      depth,
    )
  }
  if (reader.pos > reader.len) throw new RangeError('past the end')
  return into
}

function readTag(reader: BinaryReader): [number, number] {
  const start = reader.pos
  const tag = reader.uint32()
  if (tag < 8 || reader.pos - start > 5) throw new RangeError('tag')
  return [tag >>> 3, tag & 7]
}

function skip(reader: BinaryReader, number: number, wireType: number, depth: number): void {
  if (depth > groupsMax) throw new RangeError('groups')
  if (wireType === 0) reader.uint64()
  else if (wireType === 1) reader.fixed64()
  else if (wireType === 2) reader.bytes()
  else if (wireType === 5) reader.fixed32()
  else if (wireType !== 3) throw new RangeError('wire type')
  else
    for (;;) {
      const [inner, innerType] = readTag(reader)
      if (innerType === 4 && inner !== number) throw new RangeError('end of another group')
      if (innerType === 4) return
      skip(reader, inner, innerType, depth + 1)
    }
}

function readField(reader: BinaryReader, field: Field, wireType: number, into: Message, depth: number): void {
  const own = wireTypes[field.type] ?? 2
  if (wireType !== own && !(field.repeated && wireType === 2)) throw new RangeError('wrong wire type')
  for (const other of field.partOf?.oneof ?? []) if (other !== field.name) delete into[other]
  const { resolvedType } = field
  if (resolvedType !== null && 'fieldsById' in resolvedType) {
    const bytes = reader.bytes()
    const before =
      field.repeated || resolvedType.name === 'AnyValue' ? {} : ((into[field.name] as Message) ?? {})
    put(into, field, readInner(resolvedType, bytes, before, depth))
  } else if (field.repeated && wireType === 2 && own !== 2) {
    const packed = new BinaryReader(reader.bytes())
    while (packed.pos < packed.len) put(into, field, readScalar(packed, field))
  } else put(into, field, readScalar(reader, field))
}

function readInner(type: Type, bytes: Uint8Array, before: Message, depth: number): Message {
  const isNesting = type.name === 'ArrayValue' || type.name === 'KeyValueList'
  if (isNesting && depth === deepest) return {}
  return readMessage(type, bytes, isNesting ? {} : before, isNesting ? depth + 1 : depth)
}

/** Puts the field that was set last at the end, because the JSON reader uses the last member of a oneof. */
function put(into: Message, { name, repeated }: Field, value: unknown): void {
  if (repeated) {
    const list = (into[name] as unknown[] | undefined) ?? []
    list.push(value)
    into[name] = list
  } else {
    delete into[name]
    into[name] = value
  }
}

const wireTypes: Readonly<Record<string, number>> = {
  double: 1,
  fixed64: 1,
  sfixed64: 1,
  fixed32: 5,
  int32: 0,
  uint32: 0,
  sint32: 0,
  int64: 0,
  uint64: 0,
  bool: 0,
}

function readScalar(reader: BinaryReader, field: Field): unknown {
  switch (field.type) {
    case 'string':
      return Buffer.from(reader.bytes()).toString('utf8')
    case 'bytes':
      return Buffer.from(reader.bytes()).toString(idNames.has(field.name) ? 'hex' : 'base64')
    case 'double':
      return doubleJson(reader.double())
    case 'bool':
      return reader.bool()
    case 'int32':
    case 'uint32':
    case 'sint32':
    case 'fixed32':
      return reader[field.type]()
    case 'int64':
    case 'uint64':
    case 'fixed64':
    case 'sfixed64':
      return String(reader[field.type]())
    default:
      throw new TypeError(`No way to read ${field.type}`)
  }
}

function doubleJson(value: number): number | string {
  if (Object.is(value, -0)) return '-0'
  return Number.isFinite(value) ? value : String(value)
}
