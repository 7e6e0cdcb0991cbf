// The outer messages of the three signals in protobuf, which differ only in their names: resources that
// contain scopes that contain records.

import { readAttribute } from './proto-attributes.ts'
import type { ProtoReader } from './proto-reader.ts'

/** The part of a signal: reads a record that stops at `end` and adds its rows. */
export interface ProtoRecordReader {
  readRecord(end: number): void
}

/**
 * Reads an `Export<Signal>ServiceRequest`. A resource may follow its records on the wire, so each outer
 * message is read twice: once for its own fields, once for its content. The first pass skips the content, so
 * reading is linear in the size of the body.
 *
 * @throws OtlpDecodeError
 */
export function readProtoRequest(reader: ProtoReader, records: ProtoRecordReader): void {
  const end = reader.body.length
  const { location } = reader.rows
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag !== ((1 << 3) | 2)) {
      reader.skip(tag, end, 1 << 1)
      continue
    }
    location.resource++
    location.scope = -1
    readResourceGroup(reader, reader.enter(end), records)
  }
}

function readResourceGroup(reader: ProtoReader, end: number, records: ProtoRecordReader): void {
  const { location, resource } = reader.rows
  const start = reader.pos
  resource.clear()
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag === ((1 << 3) | 2)) readResource(reader, reader.enter(end))
    else if (tag === ((2 << 3) | 2)) reader.pos = reader.enter(end)
    else if (tag === ((3 << 3) | 2)) reader.text(end, resource.schemaUrl)
    else reader.skip(tag, end, 0b1110)
  }
  reader.rows.finishResource()
  reader.pos = start
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag !== ((2 << 3) | 2)) {
      reader.skip(tag, end, 0)
      continue
    }
    location.scope++
    location.record = -1
    readScopeGroup(reader, reader.enter(end), records)
    location.record = -1
  }
  location.scope = -1
}

function readScopeGroup(reader: ProtoReader, end: number, records: ProtoRecordReader): void {
  const { location, scope } = reader.rows
  const start = reader.pos
  scope.clear()
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag === ((1 << 3) | 2)) readScope(reader, reader.enter(end))
    else if (tag === ((2 << 3) | 2)) reader.pos = reader.enter(end)
    else if (tag === ((3 << 3) | 2)) reader.text(end, scope.schemaUrl)
    else reader.skip(tag, end, 0b1110)
  }
  reader.rows.finishScope()
  reader.pos = start
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag !== ((2 << 3) | 2)) {
      reader.skip(tag, end, 0)
      continue
    }
    location.record++
    records.readRecord(reader.enter(end))
  }
}

function readResource(reader: ProtoReader, end: number): void {
  const { resource } = reader.rows
  let attributeCount = 0
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag === ((1 << 3) | 2)) {
      readAttribute(reader, end, resource.attributes)
      attributeCount++
    } else reader.skip(tag, end, 1 << 1)
  }
  reader.rows.noteManyAttributes(attributeCount)
}

function readScope(reader: ProtoReader, end: number): void {
  const { scope } = reader.rows
  let attributeCount = 0
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    switch (tag) {
      case (1 << 3) | 2:
        reader.text(end, scope.name)
        break
      case (2 << 3) | 2:
        reader.text(end, scope.version)
        break
      case (3 << 3) | 2:
        readAttribute(reader, end, scope.attributes)
        attributeCount++
        break
      case (4 << 3) | 0:
        scope.droppedAttributesCount = reader.uint32()
        break
      default:
        reader.skip(tag, end, 0b11110)
    }
  }
  reader.rows.noteManyAttributes(attributeCount)
}
