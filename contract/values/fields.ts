// Schemas that several parts of the contract share: instants, pages of lists, and the integers of a query
// string.

import { z } from 'zod'

/** RFC 3339 UTC with `Z`. */
export const Instant = z.string().meta({ format: 'date-time' })

/**
 * A name that people read, also in a terminal: no control characters, and none that changes the direction of
 * the text that follows.
 */
export const DisplayName = z
  .string()
  .min(1)
  .max(100)
  .regex(/^[^\p{Cc}\p{Bidi_Control}]*$/u, { error: 'Use printable characters only' })

/** No body, or an empty object, which some clients send. */
export const NoBody = z.strictObject({}).optional()

/** A page of a list, newest first unless the operation says otherwise. */
export function pageOf<T extends z.ZodType>(item: T) {
  const page = z.object({
    items: z.array(item),
    next_cursor: z
      .string()
      .nullable()
      .describe('Pass it as `cursor` to get the next page; null on the last page.'),
  })
  const id = z.globalRegistry.get(item)?.id
  return id === undefined ? page : page.meta({ id: `${id}Page` })
}

/**
 * An integer in a query string. Text that is not an integer is reported as `int_parsing`, the type that
 * Pydantic has for it; a value out of bounds is reported with the bound.
 */
export function queryInt(options: { min: number; max: number; fallback: number; describe: string }) {
  return z
    .string()
    .optional()
    .transform((text, context) => {
      if (text === undefined) return options.fallback
      if (!/^-?\d{1,15}$/.test(text)) {
        return refuse(context, 'int_parsing', 'Input should be a valid integer', {})
      }
      const value = Number(text)
      if (value < options.min) {
        return refuse(context, 'greater_than_equal', `Input should be at least ${options.min}`, {
          ge: options.min,
        })
      }
      if (value > options.max) {
        return refuse(context, 'less_than_equal', `Input should be at most ${options.max}`, {
          le: options.max,
        })
      }
      return value
    })
    .meta({
      type: 'integer',
      minimum: options.min,
      maximum: options.max,
      default: options.fallback,
      description: options.describe,
    })
}

/** Adds an issue with its own error type and context; `server/core/input/schema-problems.ts` reads them. */
export function refuse(
  context: {
    addIssue: (issue: { code: 'custom'; message: string; params: Record<string, unknown> }) => void
  },
  type: string,
  message: string,
  ctx: Record<string, unknown>,
): typeof z.NEVER {
  context.addIssue({ code: 'custom', message, params: { type, ctx } })
  return z.NEVER
}

export const limitQuery = queryInt({ min: 1, max: 500, fallback: 50, describe: 'Items per page.' })
/** Large enough for a cursor that contains a name of 1,024 characters of any script. */
export const cursorQuery = z.string().max(6_000).optional().describe('`next_cursor` of the previous page.')
