// JSON Schemas of the contract's Zod schemas for an OpenAPI 3.1 document. A schema with an `id` in its
// metadata becomes a component of that name and is referenced where it is used; every other schema is written
// where it is used.

import { z } from 'zod'
import { oldNameOf, takeOldNames } from '../values/old-names.ts'

export interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly [keyword: string]: unknown
}

/** Whether a schema describes what clients send or what the service returns. */
type Direction = 'input' | 'output'

const componentPath = '#/components/schemas/'

export class SchemaComponents {
  readonly #made = new Map<string, JsonSchema>()
  readonly #added: Readonly<Record<Direction, Map<z.ZodType, JsonSchema>>> = {
    input: new Map(),
    output: new Map(),
  }

  /** Components by name, in alphabetical order. */
  all(): Record<string, JsonSchema> {
    return Object.fromEntries([...this.#made].sort(([one], [other]) => (one < other ? -1 : 1)))
  }

  /** Returns the schema, or a reference to it where it has a name. */
  add(schema: z.ZodType, io: Direction): JsonSchema {
    const known = this.#added[io].get(schema)
    if (known !== undefined) return known
    const made = this.#make(schema, io)
    this.#added[io].set(schema, made)
    return made
  }

  #make(schema: z.ZodType, io: Direction): JsonSchema {
    const { $defs = {}, ...root } = z.toJSONSchema(schema, {
      io,
      unrepresentable: 'any',
      override: ({ zodSchema, jsonSchema }) => restoreMeta(zodSchema, jsonSchema),
    })
    for (const [id, component] of Object.entries($defs)) this.#keep(id, cleaned(component))
    return cleaned(root)
  }

  /** Returns the schema itself, also where it has a name, because its parameters are used one by one. */
  inPlace(schema: z.ZodType, io: Direction): JsonSchema {
    const made = this.add(schema, io)
    const { $ref } = made
    return typeof $ref === 'string' ? (this.#made.get($ref.slice(componentPath.length)) ?? made) : made
  }

  #keep(id: string, schema: JsonSchema): void {
    const known = this.#made.get(id)
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schema)) {
      throw new Error(
        `Two schemas are called ${id}, or one differs as input and as output; give one another id.`,
      )
    }
    this.#made.set(id, schema)
  }
}

/** Zod omits the metadata of transformed inputs; ours describes what is sent, so it is added again. */
function restoreMeta(schema: z.core.$ZodType, json: z.core.JSONSchema.BaseSchema): void {
  const { default: fallback, examples } = z.globalRegistry.get(schema) ?? {}
  if (fallback !== undefined && json.$ref === undefined) json.default = fallback as typeof json.default
  if (Array.isArray(examples) && json.$ref === undefined) json.examples = examples
}

/**
 * Returns the schema without what only Zod uses, with references to the components, and with fields under
 * their old names.
 */
function cleaned({
  $schema: _,
  id: __,
  ...schema
}: object & { $schema?: unknown; id?: unknown }): JsonSchema {
  const copy: JsonSchema = JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    key === '$ref' && typeof value === 'string' ? value.replace('#/$defs/', componentPath) : value,
  )
  return withOldNames(copy)
}

/** Describes each renamed field a second time, under the old name that is also accepted. */
function withOldNames(schema: JsonSchema): JsonSchema {
  const { properties, ...rest } = schema
  const oldNames = Object.entries(takeOldNames(rest))
  if (oldNames.length === 0) return schema
  const fields = new Map(Object.entries(properties ?? {}))
  for (const [name, current] of oldNames) {
    const field = fields.get(current)
    if (field === undefined) throw new Error(`The schema has no field ${current}.`)
    fields.set(name, { ...field, ...oldNameOf(current) })
  }
  return { ...rest, properties: Object.fromEntries(fields) }
}
