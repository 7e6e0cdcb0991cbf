// The operations of the OpenAPI document, as a client generator would read them. Nothing here uses the
// service's code, so gaps in the document are found.

import { z } from 'zod'

/** A JSON Schema of the document: the keywords that its generator uses. */
export interface JsonSchema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
  readonly allOf?: readonly JsonSchema[]
  readonly format?: string
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly items?: JsonSchema
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | JsonSchema
  readonly propertyNames?: JsonSchema
}

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly schema: JsonSchema
}

export interface Operation {
  readonly id: string
  readonly method: string
  /** With its parameters in braces. */
  readonly path: string
  readonly parameters: readonly Parameter[]
  /** Schemas by media type. */
  readonly bodies: ReadonlyMap<string, JsonSchema>
  /** By status, then by media type: the location of the schema in the document, as a JSON pointer. */
  readonly answers: ReadonlyMap<number, ReadonlyMap<string, string>>
  /** Whether it needs a token. */
  readonly isGuarded: boolean
}

const Schema = z.custom<JsonSchema>((value) => typeof value === 'object' && value !== null)
const Content = z.record(z.string(), z.looseObject({ schema: Schema.optional() })).optional()

export const Document = z.looseObject({
  openapi: z.string(),
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.looseObject({
        operationId: z.string(),
        security: z.array(z.unknown()).optional(),
        parameters: z
          .array(
            z.looseObject({
              name: z.string(),
              in: z.enum(['path', 'query', 'header']),
              required: z.boolean().default(false),
              schema: Schema,
            }),
          )
          .default([]),
        requestBody: z.looseObject({ content: Content }).optional(),
        responses: z.record(z.string(), z.looseObject({ content: Content })),
      }),
    ),
  ),
})
export type Document = z.output<typeof Document>

export function operationsOf({ paths }: Document): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, declared]) => ({
      id: declared.operationId,
      method: method.toUpperCase(),
      path,
      parameters: declared.parameters,
      bodies: new Map(
        Object.entries(declared.requestBody?.content ?? {}).map(([type, { schema = {} }]) => [type, schema]),
      ),
      answers: new Map(
        Object.entries(declared.responses).map(([status, { content = {} }]) => [
          Number(status),
          new Map(
            Object.keys(content).map((type) => [
              type,
              pointer('paths', path, method, 'responses', status, 'content', type, 'schema'),
            ]),
          ),
        ]),
      ),
      isGuarded: (declared.security ?? []).length > 0,
    })),
  )
}

/** RFC 6901, as the fragment of a URI. */
function pointer(...keys: readonly string[]): string {
  return keys.map((key) => `/${encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('')
}

/** Returns the schema that a reference into the same document refers to. */
export function resolve(document: Document, schema: JsonSchema): JsonSchema {
  if (schema.$ref === undefined) return schema
  let found: unknown = document
  for (const key of schema.$ref.slice(2).split('/'))
    found = (found as Record<string, unknown>)[key.replaceAll('~1', '/').replaceAll('~0', '~')]
  return resolve(document, found as JsonSchema)
}
