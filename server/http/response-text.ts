// The JSON text of a response, checked against its schema, as bytes. A chart of a month has tens of thousands
// of points, and a page megabytes of records: writing one takes a tenth of a second, in which the event loop
// would serve nobody else. So the lists of a response are written element by element, and after each slice of
// time the writer waits for its next turn (core/turns/loop-turns.ts). Elements become bytes piece by piece,
// because one text of megabytes costs several times as much: V8 takes new memory from the system for each.

import { z } from 'zod'
import { Pace } from '../core/turns/pace.ts'

/**
 * Writes the body of a response.
 *
 * @param turn resolves when the writer may continue; not called for a body that takes less than a slice
 * @throws ZodError where the body does not match the schema, which is a defect of the service
 */
type WriteResponse = (body: unknown, turn: () => Promise<void>) => Promise<Buffer>

/** Characters that become bytes at once: small enough for the memory that V8 reuses. */
const pieceLength = 16_384

/**
 * Returns a writer of bodies of this schema. An object with rules across its fields is written as a whole.
 */
export function responseWriter(schema: z.ZodType): WriteResponse {
  if (
    !(schema instanceof z.ZodObject) ||
    schema.def.checks !== undefined ||
    schema.def.catchall !== undefined
  )
    return async (body) => Buffer.from(JSON.stringify(z.encode(schema, body)))
  const fields = Object.entries<z.ZodType>(schema.shape).map(([name, field]) => ({
    name,
    label: JSON.stringify(name),
    field,
    element: elementOf(field),
  }))
  return async (body, turn) => {
    const values = z.looseObject({}).parse(body)
    const pace = new Pace(turn)
    const text = new TextBytes()
    let separator = '{'
    for (const { name, label, field, element } of fields) {
      const value = values[name]
      if (element !== null && Array.isArray(value)) {
        text.add(`${separator}${label}:`)
        await writeList(text, element, value, pace)
      } else {
        const written = JSON.stringify(z.encode(field, value))
        // JSON.stringify omits undefined values too.
        if (written === undefined) continue
        text.add(`${separator}${label}:${written}`)
      }
      separator = ','
    }
    text.add(separator === '{' ? '{}' : '}')
    return text.bytes()
  }
}

/**
 * Returns the schema of the elements; null for anything but a list, and for a list with a rule about the
 * whole.
 */
function elementOf(field: z.ZodType): z.ZodType | null {
  if (!(field instanceof z.ZodArray) || field.def.checks !== undefined) return null
  return field.element instanceof z.ZodType ? field.element : null
}

async function writeList(
  text: TextBytes,
  element: z.ZodType,
  values: readonly unknown[],
  pace: Pace,
): Promise<void> {
  let separator = '['
  for (const value of values) {
    if (pace.isOver()) await pace.turn()
    text.add(separator)
    text.add(JSON.stringify(z.encode(element, value)))
    separator = ','
  }
  text.add(separator === '[' ? '[]' : ']')
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
