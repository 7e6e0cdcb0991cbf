// A map whose keys a client chose, such as the attributes of a record. Zod's own record leaves out the key
// `__proto__`, because it copies by assignment; here that would hide an attribute from its organisation, or
// make a filter wider than requested. So nothing is copied: the map is checked and passed on unchanged.

import { z } from 'zod'

type LabelMap = Readonly<Record<string, string>>

/** The schemas of keys and values. */
interface LabelMapTexts {
  readonly key: z.ZodString
  readonly value: z.ZodString
}

const textsByMap = new WeakMap<z.ZodType, LabelMapTexts>()

/**
 * Returns the schemas of keys and values, for code that checks a long map entry by entry; null where the
 * schema is not the result of {@link labelMap} itself.
 */
export function labelMapTexts(schema: z.ZodType): LabelMapTexts | null {
  return textsByMap.get(schema) ?? null
}

/** Checks each key and each value; a problem has the path of its key. */
export function labelMap(key: z.ZodString = z.string(), value: z.ZodString = z.string()) {
  const schema = z
    .custom<LabelMap>()
    .superRefine((map: unknown, context) => {
      if (typeof map !== 'object' || map === null || Array.isArray(map)) {
        context.addIssue({ code: 'invalid_type', expected: 'record', input: map })
        return
      }
      for (const [name, text] of Object.entries(map)) {
        const [named, said] = [key.safeParse(name), value.safeParse(text)]
        if (!named.success) {
          const { issues } = named.error
          context.addIssue({ code: 'invalid_key', origin: 'record', issues, input: name, path: [name] })
        }
        for (const issue of said.error?.issues ?? []) {
          context.addIssue({ ...issue, input: text, path: [name, ...issue.path] })
        }
      }
    })
    .meta({
      type: 'object',
      propertyNames: describe(key),
      additionalProperties: describe(value),
    })
  textsByMap.set(schema, { key, value })
  return schema
}

function describe(text: z.ZodString) {
  const { $schema: _, ...schema } = z.toJSONSchema(text)
  return schema
}

const labelsMax = 20

/**
 * The most bytes of the JSON of labels that a client stores. Each run, list and statement that needs them
 * reads all of them: a thousand detectors with 60 kB each took a second of the event loop.
 */
const labelBytesMax = 4096

/** Labels that are stored: at most 20. What a client sends must also be short, see {@link areShort}. */
export function storedLabels(noun: LabelNoun) {
  return labelMap(z.string().min(1).max(300), z.string().max(1000)).refine(
    (labels) => Object.keys(labels).length <= labelsMax,
    {
      error: `Give at most ${labelsMax} ${noun}`,
      params: { type: 'too_long', ctx: { max_length: labelsMax } },
    },
  )
}

type LabelNoun = 'attributes' | 'labels'

/** Whether labels have at most {@link labelBytesMax} bytes. Those of before the limit may have more. */
export function areShort(labels: LabelMap): boolean {
  return new TextEncoder().encode(JSON.stringify(labels)).byteLength <= labelBytesMax
}

/** The problem of labels that are not short. */
export function tooManyBytes(noun: LabelNoun) {
  return {
    error: `Give ${noun} of at most ${labelBytesMax} bytes, counted as JSON in UTF-8`,
    params: { type: 'bytes_too_long', ctx: { max_length: labelBytesMax } },
  }
}
