// Attributes and values of any type in protobuf, for all signals. Of several values in one message the last
// one counts, at every level.

import type { MapCell, TextCell } from '../rows/cells.ts'
import { fault, maxNesting, noFault } from '../rows/faults.ts'
import { arrayText, doubleText, emptyText, mapText, stringText } from './attributes.ts'
import type { ProtoReader } from './proto-reader.ts'

/** Reads one `KeyValue` into the map. The caller counts the calls for `RowCollector.noteManyAttributes`. */
export function readAttribute(reader: ProtoReader, parentEnd: number, into: MapCell): void {
  const end = reader.enter(parentEnd)
  const { key, value, memo, pos: start, rows } = reader
  const known = memo.find(start, end)
  if (known >= 0) {
    into.addKnown(memo, known)
    reader.pos = end
    return
  }
  key.clear()
  value.clear()
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag === ((1 << 3) | 2)) reader.text(end, key)
    else if (tag === ((2 << 3) | 2)) readAnyValue(reader, reader.enter(end), value)
    else reader.skip(tag, end, 0b110)
  }
  rows.noteLongAttribute(key, value)
  into.add(key, value, reader.body)
  // Faults of an attribute in the memo would not be noted again.
  if (rows.fault === noFault) into.keepLast(memo, start, end)
}

/** Reads the text of the `AnyValue` that stops at `end`. */
export function readAnyValue(reader: ProtoReader, end: number, into: TextCell): void {
  into.clear()
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag === ((1 << 3) | 2)) reader.text(end, into)
    else {
      const text = readMember(reader, tag, end, 0)
      if (text !== null) into.setText(text)
    }
  }
}

/**
 * Returns any member except a string as text; null for an unknown field.
 *
 * @param depth number of arrays and maps around it; inside one the text is JSON
 */
function readMember(reader: ProtoReader, tag: number, end: number, depth: number): string | null {
  const nested = depth > 0
  switch (tag) {
    case (2 << 3) | 0:
      return reader.bool() ? 'true' : 'false'
    case (3 << 3) | 0:
      return reader.int64Text()
    case (4 << 3) | 1:
      return doubleText(reader.double(), nested)
    case (5 << 3) | 2:
      return readNested(reader, reader.enter(end), depth + 1, readArray)
    case (6 << 3) | 2:
      return readNested(reader, reader.enter(end), depth + 1, readMap)
    case (7 << 3) | 2:
      return stringText(reader.base64(end), nested)
    default:
      reader.skip(tag, end, 0b11111110)
      return null
  }
}

/** Returns the JSON text of an `AnyValue` inside an array or map. */
function readInnerValue(reader: ProtoReader, end: number, depth: number): string {
  let text = emptyText(true)
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag === ((1 << 3) | 2)) text = stringText(reader.string(end), true)
    else text = readMember(reader, tag, end, depth) ?? text
  }
  return text
}

type ReadNested = (reader: ProtoReader, end: number, depth: number) => string

function readNested(reader: ProtoReader, end: number, depth: number, read: ReadNested): string {
  if (depth <= maxNesting) return read(reader, end, depth)
  reader.rows.note(fault.nestedTooDeep)
  reader.pos = end
  return 'null'
}

function readArray(reader: ProtoReader, end: number, depth: number): string {
  const items: string[] = []
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag === ((1 << 3) | 2)) items.push(readInnerValue(reader, reader.enter(end), depth))
    else reader.skip(tag, end, 1 << 1)
  }
  return arrayText(items)
}

function readMap(reader: ProtoReader, end: number, depth: number): string {
  const entries = new Map<string, string>()
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag === ((1 << 3) | 2)) readMapEntry(reader, reader.enter(end), depth, entries)
    else reader.skip(tag, end, 1 << 1)
  }
  return mapText(entries)
}

function readMapEntry(reader: ProtoReader, end: number, depth: number, entries: Map<string, string>): void {
  let key = ''
  let value = emptyText(true)
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag === ((1 << 3) | 2)) key = reader.string(end)
    else if (tag === ((2 << 3) | 2)) value = readInnerValue(reader, reader.enter(end), depth)
    else reader.skip(tag, end, 0b110)
  }
  entries.set(key, value)
}
