// One name per idea: a metric is `metric_key`, a half-open time range is `range_start` and `range_end`, the
// id of a resource is `id` in the resource itself and `<resource>_id` where another one refers to it. Older
// names that were once documented are still accepted, and are marked as deprecated in the reference.

import type { z } from 'zod'

/** Maps old names to current names. */
type OldNames = Readonly<Record<string, string>>

const metaKey = 'oldNames'

/**
 * Returns a schema of which the server also accepts fields under their old names. The schema itself has only
 * the current names.
 */
export function withOldNames<T extends z.ZodObject>(schema: T, oldNames: OldNames): T {
  return schema.meta({ ...schema.meta(), [metaKey]: oldNames })
}

/** Returns the old names of a schema; empty where all names are current. */
export function oldNamesOf(schema: z.ZodType): OldNames {
  return (schema.meta()?.[metaKey] as OldNames | undefined) ?? {}
}

/** Removes the old names from a JSON Schema that was made from such a schema, and returns them. */
export function takeOldNames(jsonSchema: Record<string, unknown>): OldNames {
  const oldNames = (jsonSchema[metaKey] as OldNames | undefined) ?? {}
  delete jsonSchema[metaKey]
  return oldNames
}

/** Metadata of a response field that repeats another one under its old name. */
export function oldNameOf(current: string): { readonly deprecated: true; readonly description: string } {
  return { deprecated: true, description: `The old name of \`${current}\`.` }
}

export const oldRangeNames = { start: 'range_start', end: 'range_end' } as const satisfies OldNames
