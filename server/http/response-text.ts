// The JSON text of a response, checked against its schema, as bytes. A chart of a month has tens of thousands
// of points, and one span megabytes of events: writing one takes a tenth of a second, in which the event loop
// would serve nobody else. So lists are written element by element, also the long ones inside an element, and
// long maps of labels entry by entry. After each slice of time the writer waits for its next turn
// (core/turns/pace.ts). Elements become bytes piece by piece, because one text of megabytes costs several
// times as much: V8 takes new memory from the system for each.

import { z } from 'zod'
import { labelMapTexts } from '../../contract/values/label-map.ts'
import type { Pace } from '../core/turns/pace.ts'

/**
 * Writes the body of a response.
 *
 * @param pace waited for between two elements of a list
 * @throws ZodError where the body does not match the schema, which is a defect of the service
 */
type WriteResponse = (body: unknown, pace: Pace) => Promise<Buffer>

/** Characters that become bytes at once: small enough for the memory that V8 reuses. */
const pieceLength = 16_384

/**
 * A list inside an element that has more items is written item by item, which costs more than writing the
 * element as a whole.
 */
const shortList = 16

/**
 * A map of labels with more entries, or with longer texts in all, is written entry by entry. JSON writes six
 * bytes for a control character, so a shorter one takes a millisecond or two.
 */
const shortMap = { entries: 128, length: 65_536 }

/** Where an answer is written, and when the writer waits. */
interface Output {
  readonly text: TextBytes
  readonly pace: Pace
}

/** The schemas of keys and values of a map of labels. */
type Labels = NonNullable<ReturnType<typeof labelMapTexts>>

/** A field of an object, and how its items or labels are written where it is a list or a map of any. */
interface Field {
  readonly name: string
  readonly label: string
  readonly schema: z.ZodType
  readonly item: Item | null
  readonly labels: Labels | null
}

/** The schema of the items of a list, and its fields where one of them may be a long list or map. */
interface Item {
  readonly schema: z.ZodType
  readonly fields: readonly Field[] | null
}

/**
 * Returns a writer of bodies of this schema. An object with rules across its fields is written as a whole.
 */
export function responseWriter(schema: z.ZodType): WriteResponse {
  const fields = fieldsOf(schema)
  if (fields === null) return async (body) => Buffer.from(JSON.stringify(z.encode(schema, body)))
  return async (body, pace) => {
    const out = { text: new TextBytes(), pace }
    await writeObject(out, fields, z.looseObject({}).parse(body))
    return out.text.bytes()
  }
}

/** Returns the fields of an object; null for anything else, and for an object with rules about the whole. */
function fieldsOf(schema: z.ZodType): Field[] | null {
  if (
    !(schema instanceof z.ZodObject) ||
    schema.def.checks !== undefined ||
    schema.def.catchall !== undefined
  )
    return null
  return Object.entries<z.ZodType>(schema.shape).map(([name, field]) => ({
    name,
    label: JSON.stringify(name),
    schema: field,
    item: itemOf(field),
    labels: labelMapTexts(field),
  }))
}

/** Returns null for anything but a list, and for a list with a rule about the whole. */
function itemOf(field: z.ZodType): Item | null {
  if (!(field instanceof z.ZodArray) || field.def.checks !== undefined) return null
  if (!(field.element instanceof z.ZodType)) return null
  const fields = fieldsOf(field.element)
  const hasParts = fields?.some(({ item, labels }) => item !== null || labels !== null) === true
  return { schema: field.element, fields: hasParts ? fields : null }
}

async function writeObject(
  out: Output,
  fields: readonly Field[],
  values: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { text } = out
  let separator = '{'
  for (const { name, label, schema, item, labels } of fields) {
    const value = values[name]
    if (item !== null && Array.isArray(value)) {
      text.add(`${separator}${label}:`)
      await writeList(out, item, value)
    } else if (labels !== null && isLongMap(value)) {
      text.add(`${separator}${label}:`)
      await writeLabels(out, labels, value)
    } else {
      const written = JSON.stringify(z.encode(schema, value))
      // JSON.stringify omits undefined values too.
      if (written === undefined) continue
      text.add(`${separator}${label}:${written}`)
    }
    separator = ','
  }
  text.add(separator === '{' ? '{}' : '}')
}

async function writeList(out: Output, { schema, fields }: Item, values: readonly unknown[]): Promise<void> {
  const { pace, text } = out
  let separator = '['
  for (const value of values) {
    if (pace.isOver()) await pace.turn()
    text.add(separator)
    if (fields !== null && isLong(value)) await writeObject(out, fields, value)
    else text.add(JSON.stringify(z.encode(schema, value)))
    separator = ','
  }
  text.add(separator === '[' ? '[]' : ']')
}

async function writeLabels(
  { pace, text }: Output,
  { key, value }: Labels,
  labels: Readonly<Record<string, unknown>>,
): Promise<void> {
  let separator = '{'
  for (const [name, label] of Object.entries(labels)) {
    if (pace.isOver()) await pace.turn()
    text.add(`${separator}${JSON.stringify(key.parse(name))}:${JSON.stringify(value.parse(label))}`)
    separator = ','
  }
  text.add('}')
}

/** Whether a list or a map in the value, or in an item of it, is long. */
function isLong(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false
  return Object.values(value).some((field) =>
    Array.isArray(field) ? field.length > shortList || field.some(isLong) : isLongMap(field),
  )
}

function isLongMap(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  let [entries, length] = [0, 0]
  for (const text of Object.values(value)) {
    entries += 1
    if (typeof text === 'string') length += text.length
    if (entries > shortMap.entries || length > shortMap.length) return true
  }
  return false
}

/** Collects a text as bytes. */
class TextBytes {
  readonly #pieces: Buffer[] = []
  #waiting: string[] = []
  #waitingLength = 0

  add(text: string): void {
    // Joined with others a long text would be copied.
    if (text.length >= pieceLength) {
      this.#flush()
      this.#pieces.push(Buffer.from(text))
      return
    }
    this.#waiting.push(text)
    this.#waitingLength += text.length
    if (this.#waitingLength >= pieceLength) this.#flush()
  }

  bytes(): Buffer {
    this.#flush()
    const [first] = this.#pieces
    return first !== undefined && this.#pieces.length === 1 ? first : Buffer.concat(this.#pieces)
  }

  #flush(): void {
    this.#pieces.push(Buffer.from(this.#waiting.join('')))
    this.#waiting = []
    this.#waitingLength = 0
  }
}
