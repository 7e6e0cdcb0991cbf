// One name per idea: a metric is `metric_key`, a half-open range of time is `range_start` and
// `range_end`, the id of a thing is `id` in the thing itself and `<thing>_id` where another one refers to
// it. Names from before that was so are still accepted where they were once documented, and are marked as
// deprecated in the reference.

import type { z } from 'zod'

/** Current names by the old ones. */
type OldNames = Readonly<Record<string, string>>

const metaKey = 'oldNames'

/**
 * The same schema, of which the server also takes fields under their old names. The schema itself
 * knows only the current ones.
 */
export function withOldNames<T extends z.ZodObject>(schema: T, oldNames: OldNames): T {
  return schema.meta({ ...schema.meta(), [metaKey]: oldNames })
}

/** Empty where all names are current. */
export function oldNamesOf(schema: z.ZodType): OldNames {
  return (schema.meta()?.[metaKey] as OldNames | undefined) ?? {}
}

/** Of a JSON Schema that was made from such a schema: takes the old names out, and answers them. */
export function takeOldNames(jsonSchema: Record<string, unknown>): OldNames {
  const oldNames = (jsonSchema[metaKey] as OldNames | undefined) ?? {}
  delete jsonSchema[metaKey]
  return oldNames
}

/** Of a field of an answer that stands there a second time, for those who read it under its old name. */
export function oldNameOf(current: string): { readonly deprecated: true; readonly description: string } {
  return { deprecated: true, description: `The old name of \`${current}\`.` }
}

export const oldRangeNames = { start: 'range_start', end: 'range_end' } as const satisfies OldNames
