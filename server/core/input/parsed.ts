// Parse, don't check: a function that reads input returns the value that later code uses, or every problem of
// the input. It never returns only a boolean after which the input must be read again.

import { z } from 'zod'
import type { ValidationProblem } from '../../../contract/errors.ts'
import { isRecord } from './is-record.ts'
import { problemsOf } from './schema-problems.ts'

export type Parsed<T> = { readonly value: T } | { readonly problems: readonly ValidationProblem[] }

/** A body as it was sent and as its schema parses it, for rules across its fields. */
export interface SentBody<Body> {
  /** Undefined where the schema refuses it. */
  readonly body: Body | undefined
  /** The fields that the schema accepts, parsed. */
  readonly fields: Partial<Body>
  /** The body as it was sent, under the current names of its fields. */
  readonly raw: unknown
}

/** One part of a request, parsed by its schema. */
export interface ReadPart<T> {
  /** Undefined where the schema refuses it. */
  readonly value: T | undefined
  /** The fields that the schema accepts, parsed: all of them where it accepts the whole part. */
  readonly fields: Partial<T>
  readonly problems: readonly ValidationProblem[]
}

/**
 * Parses one part of a request. Where it is refused, its valid fields are still returned for rules across
 * fields, so that one response has the problems of both.
 *
 * @param part `body`, `path`, `query` or `header`
 */
export function readPart<T extends z.ZodType>(
  part: string,
  schema: T,
  input: unknown,
): ReadPart<z.output<T>> {
  const result = schema.safeParse(input)
  if (result.success) return { value: result.data, fields: fieldsOf(result.data), problems: [] }
  const problems = problemsOf(part, result.error.issues, input)
  return { value: undefined, fields: acceptedFields(schema, input), problems }
}

/** Only an object has fields. */
function fieldsOf<T>(value: T): Partial<T> {
  return isRecord(value) ? value : {}
}

function acceptedFields<T extends z.ZodType>(schema: T, input: unknown): Partial<z.output<T>> {
  if (!(schema instanceof z.ZodObject) || !isRecord(input)) return {}
  const fields: Record<string, unknown> = {}
  for (const [name, field] of Object.entries<z.ZodType>(schema.shape)) {
    const result = field.safeParse(Object.hasOwn(input, name) ? input[name] : undefined)
    if (result.success && result.data !== undefined) fields[name] = result.data
  }
  // Each field was parsed by the schema of its own name, which the type of a lookup by name can't express.
  return fields as Partial<z.output<T>>
}
