// Damaged and unusual forms of OTLP bodies, repeatable by seed; ./mutate-meaning.ts has well-formed ones.
// Half of the changes are blind: bits flipped, bytes cut, doubled or inserted. The other half keep the
// framing, which blind changes mostly destroy: the body is parsed with the official messages; one field of it
// is doubled, moved, dropped, given another wire type or number, a longer varint or its unpacked form, or
// gets an unknown field or group beside it; and all lengths are written again.

import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire'
import type { Type } from 'protobufjs'
import type { Signal } from '../../server/telemetry/schema/tables.ts'
import { requestType } from './otlp-messages.ts'

export type Random = () => number

/** mulberry32: small, and the same everywhere. */
export function seeded(seed: number): Random {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** One to three changes of a valid body. */
export function mutate(signal: Signal, body: Buffer, random: Random): Buffer {
  let changed = body
  const changes = 1 + below(random, 3)
  const isBlind = random() < 0.5
  for (let i = 0; i < changes; i++) {
    changed = isBlind
      ? mutateBytes(changed, random)
      : mutateFields(requestType(signal), body, changed, random)
  }
  return changed
}

export const below = (random: Random, end: number) => Math.floor(random() * end)

function mutateBytes(body: Buffer, random: Random): Buffer {
  const at = below(random, body.length + 1)
  const end = Math.min(body.length, at + 1 + below(random, 9))
  switch (below(random, 5)) {
    case 0:
      return body.subarray(0, at)
    case 1:
      return Buffer.concat([body.subarray(0, at), body.subarray(end)])
    case 2:
      return Buffer.concat([body.subarray(0, end), body.subarray(at)])
    case 3:
      return Buffer.concat([body.subarray(0, at), Buffer.from([below(random, 256)]), body.subarray(at)])
    default: {
      const flipped = Buffer.from(body)
      if (at < body.length) flipped[at] = (flipped[at] ?? 0) ^ (1 << below(random, 8))
      return flipped
    }
  }
}

/** A field with its value as bytes, or parsed where it is a message. */
export interface Node {
  number: number
  wireType: number
  value: Buffer | Node[]
  /** Type of the parsed message. */
  type: Type | null
}

function mutateFields(type: Type, original: Buffer, changed: Buffer, random: Random): Buffer {
  const nodes = parseFields(type, changed) ?? parseFields(type, original)
  if (nodes === null) return changed
  changeSome(nodes, random)
  return Buffer.from(encodeFields(nodes))
}

/** The fields of a message, or null where the bytes can't be parsed. */
export function parseFields(type: Type | null, bytes: Uint8Array): Node[] | null {
  try {
    const reader = new BinaryReader(bytes)
    const nodes: Node[] = []
    while (reader.pos < reader.len) {
      const [number, wireType] = reader.tag()
      const start = reader.pos
      reader.skip(wireType, number)
      const value = Buffer.from(bytes.subarray(start, reader.pos))
      const inner = type?.fieldsById[number]?.resolvedType
      const isMessage = wireType === 2 && inner !== undefined && inner !== null && 'fieldsById' in inner
      const children = isMessage ? parseFields(inner, contentOf(value)) : null
      nodes.push({ number, wireType, value: children ?? value, type: isMessage ? inner : null })
    }
    return nodes
  } catch {
    return null
  }
}

/** Without the length prefix. */
const contentOf = (value: Uint8Array) => new BinaryReader(value).bytes()

export function encodeFields(nodes: readonly Node[]): Uint8Array {
  const parts = nodes.map(({ number, wireType, value }) => {
    const tag = new BinaryWriter().uint32(((number << 3) | wireType) >>> 0).finish()
    if (!Array.isArray(value)) return Buffer.concat([tag, value])
    const content = encodeFields(value)
    return Buffer.concat([tag, new BinaryWriter().uint32(content.length).finish(), content])
  })
  return Buffer.concat(parts)
}

function changeSome(nodes: Node[], random: Random): void {
  const list = pickList(nodes, random)
  const at = below(random, list.length)
  const node = list[at]
  if (node === undefined) {
    list.push(strange(random))
    return
  }
  const changes = [
    () => list.push(copyOf(node)),
    () => list.splice(at, 1),
    () => list.push(...list.splice(at, 1)),
    () => list.splice(at, 0, strange(random)),
    () => {
      node.wireType = below(random, 8)
    },
    () => {
      node.number = 1 + below(random, 17)
    },
    () => lengthen(node),
    () => list.splice(at, 1, ...unpacked(node)),
  ]
  changes[below(random, changes.length)]?.()
}

/** The fields of some message in the tree; deep ones are as likely as shallow ones. */
function pickList(nodes: Node[], random: Random): Node[] {
  const inner = nodes.map(({ value }) => value).filter((value) => Array.isArray(value))
  const next = inner[below(random, inner.length)]
  return next === undefined || random() < 0.2 ? nodes : pickList(next, random)
}

export const copyOf = ({ number, wireType, value, type }: Node): Node => ({
  number,
  wireType,
  type,
  value: Array.isArray(value) ? value.map(copyOf) : value,
})

/** An unknown field, or a group with one inside. */
function strange(random: Random): Node {
  const number = 18 + below(random, 2_000)
  const inside = new BinaryWriter().uint32((7 << 3) | 0).uint32(below(random, 1_000))
  if (random() < 0.5) return { number, wireType: 0, value: Buffer.from([below(random, 128)]), type: null }
  const group = inside.uint32(((number << 3) | 4) >>> 0).finish()
  return { number, wireType: 3, value: Buffer.from(group), type: null }
}

/** The same number in more bytes than necessary. */
function lengthen(node: Node): void {
  if (node.wireType !== 0 || Array.isArray(node.value) || node.value.length > 8) return
  const longer = Buffer.concat([node.value, Buffer.from([0])])
  longer[node.value.length - 1] = (longer[node.value.length - 1] ?? 0) | 128
  node.value = longer
}

/** Splits a packed list of 64-bit numbers; anything else is unchanged. */
function unpacked(node: Node): Node[] {
  if (node.wireType !== 2 || Array.isArray(node.value)) return [node]
  const content = contentOf(node.value)
  if (content.length === 0 || content.length % 8 !== 0) return [node]
  return Array.from({ length: content.length / 8 }, (_, at) => ({
    number: node.number,
    wireType: 1,
    value: Buffer.from(content.subarray(at * 8, at * 8 + 8)),
    type: null,
  }))
}
