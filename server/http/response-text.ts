// The JSON text of a response, checked against its schema. A chart of a month has tens of thousands of
// points, and a page megabytes of records: writing one takes a tenth of a second, in which the event loop
// would serve nobody else. So the lists of a response are written element by element, and after each slice of
// time the writer waits for its next turn (core/turns/loop-turns.ts).

import { z } from 'zod'
import { elapsedMs } from '../core/clock.ts'

/**
 * Writes the body of a response.
 *
 * @param turn resolves when the writer may continue; not called for a body that takes less than a slice
 * @throws ZodError where the body does not match the schema, which is a defect of the service
 */
type WriteResponse = (body: unknown, turn: () => Promise<void>) => Promise<string>

/** How long the writer works at once, milliseconds; one element may take longer. */
const sliceMs = 1

/**
 * Returns a writer of bodies of this schema. An object with rules across its fields is written as a whole.
 */
export function responseWriter(schema: z.ZodType): WriteResponse {
  if (
    !(schema instanceof z.ZodObject) ||
    schema.def.checks !== undefined ||
    schema.def.catchall !== undefined
  )
    return async (body) => JSON.stringify(z.encode(schema, body))
  const fields = Object.entries<z.ZodType>(schema.shape).map(([name, field]) => ({
    name,
    label: JSON.stringify(name),
    field,
    element: elementOf(field),
  }))
  return async (body, turn) => {
    const values = z.looseObject({}).parse(body)
    const pace = new Pace(turn)
    const parts: string[] = []
    for (const { name, label, field, element } of fields) {
      const value = values[name]
      const text =
        element !== null && Array.isArray(value)
          ? await listText(element, value, pace)
          : JSON.stringify(z.encode(field, value))
      // JSON.stringify omits undefined values too.
      if (text !== undefined) parts.push(`${label}:${text}`)
    }
    return `{${parts.join(',')}}`
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

async function listText(element: z.ZodType, values: readonly unknown[], pace: Pace): Promise<string> {
  const texts: string[] = []
  for (const value of values) {
    if (pace.isOver()) await pace.turn()
    texts.push(JSON.stringify(z.encode(element, value)))
  }
  return `[${texts.join(',')}]`
}

class Pace {
  readonly #turn: () => Promise<void>
  #startedMs = elapsedMs()

  constructor(turn: () => Promise<void>) {
    this.#turn = turn
  }

  isOver(): boolean {
    return elapsedMs() - this.#startedMs >= sliceMs
  }

  async turn(): Promise<void> {
    await this.#turn()
    this.#startedMs = elapsedMs()
  }
}
