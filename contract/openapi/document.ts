// The OpenAPI 3.1 document of the declared operations. It uses only the contract, so a generated client and
// the service cannot disagree, and the document can be made without a running service.

import { z } from 'zod'
import { ErrorBody, type ErrorCode, errorCatalogue, ValidationError } from '../errors.ts'
import { pathExamples } from '../examples/params.ts'
import { type ResponseHeader, responseHeaders } from '../headers.ts'
import { bodyTypesOf, jsonType, type Operation, type Success, tags } from '../operation.ts'
import { formOf, refusalsByStatus, validatesInput } from './refusals.ts'
import { type JsonSchema, SchemaComponents } from './schemas.ts'

/** Returns the document as an object to be sent as JSON. Hidden operations are left out. */
export function openApiDocument(operations: readonly Operation[], version: string): object {
  const schemas = new SchemaComponents()
  const paths: Record<string, Record<string, object>> = {}
  for (const operation of operations) {
    if (operation.isHidden === true) continue
    const path = operation.path.replace(/:([a-z_]+)/g, '{$1}')
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: describe(operation, schemas) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Lethe',
      version,
      description:
        'Stores metrics, logs and traces per organisation, watches them with anomaly detectors, and lets an organisation erase its own telemetry and prove it.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: schemas.all(),
      headers: Object.fromEntries(
        Object.entries(responseHeaders).map(([name, description]) => [
          name,
          { description, schema: { type: 'string' } },
        ]),
      ),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An access token of your organisation.' },
        basic: {
          type: 'http',
          scheme: 'basic',
          description: 'An access token as the password, with any user name; for sending telemetry only.',
        },
      },
    },
  }
}

function describe(operation: Operation, schemas: SchemaComponents): object {
  const parameters = parametersOf(operation, schemas)
  return {
    operationId: operation.id,
    summary: operation.summary,
    tags: [operation.tag],
    ...(operation.description !== undefined && { description: operation.description }),
    ...(parameters.length > 0 && { parameters }),
    ...(operation.body !== undefined && { requestBody: requestBodyOf(operation, operation.body, schemas) }),
    ...(operation.access !== 'public' && {
      security: [{ bearer: [] }, ...(operation.takesBasic === true ? [{ basic: [] }] : [])],
    }),
    responses: { ...successesOf(operation, schemas), ...refusalsOf(operation, schemas) },
  }
}

function parametersOf({ headers, params, query }: Operation, schemas: SchemaComponents): object[] {
  const places = { path: params, query, header: headers }
  return Object.entries(places).flatMap(([place, schema]) => {
    if (schema === undefined) return []
    const { properties = {}, required = [] } = schemas.inPlace(schema, 'input')
    return Object.entries(properties).map(([name, { description, ...rest }]) => ({
      name,
      in: place,
      required: required.includes(name),
      ...(description !== undefined && { description }),
      ...(rest.deprecated === true && { deprecated: true }),
      ...(place === 'path' && { example: pathExamples[name] }),
      schema: rest,
    }))
  })
}

function requestBodyOf(operation: Operation, body: z.ZodType, schemas: SchemaComponents): object {
  const schema = schemas.add(body, 'input')
  const { bodyExample: example } = operation
  return {
    required: operation.protocol !== undefined || !body.isOptional(),
    ...(body.description !== undefined && { description: body.description }),
    content: Object.fromEntries(
      bodyTypesOf(operation).map((type) => [
        type,
        { schema, ...(example !== undefined && type.endsWith('json') && { example }) },
      ]),
    ),
  }
}

function successesOf(operation: Operation, schemas: SchemaComponents): Record<string, object> {
  return Object.fromEntries(
    Object.entries(operation.results).map(([status, success]) => {
      const description = success.meaning ?? success.body.description ?? `${operation.summary}.`
      const content = contentOf(success, schemas)
      return [status, { description, headers: headersOf(success.headers), ...(content && { content }) }]
    }),
  )
}

function contentOf(
  { body, example, page, types = [jsonType] }: Success<z.ZodType>,
  schemas: SchemaComponents,
): Record<string, object> | null {
  if (body instanceof z.ZodUndefined) return null
  const content = { schema: schemas.add(body, 'output'), ...(example !== undefined && { example }) }
  return {
    ...Object.fromEntries(types.map((type) => [type, type.endsWith('json') ? content : { schema: {} }])),
    ...(page !== undefined && { 'text/html': { schema: { type: 'string', description: page } } }),
  }
}

/** References to header descriptions: those of this response, and the one that every response has. */
function headersOf(own: readonly ResponseHeader[] = []): Record<string, object> {
  const names: readonly ResponseHeader[] = ['x-request-id', ...own]
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

const headersByStatus: Readonly<Record<number, readonly ResponseHeader[]>> = {
  401: ['www-authenticate'],
  429: ['retry-after'],
  503: ['retry-after'],
}

function refusalsOf(operation: Operation, schemas: SchemaComponents): Record<string, object> {
  const refusals: Record<string, object> = {}
  for (const [status, codes] of refusalsByStatus(operation)) {
    // Keep what the operation itself says of a status, such as 503 for not ready.
    if (status in operation.results) continue
    refusals[status] = {
      description: [
        ...codes.map((code) => `\`${code}\`: ${errorCatalogue[code].sentence}`),
        ...limitOf(operation, status),
      ].join(' '),
      headers: headersOf(headersByStatus[status]),
      content: refusalContentOf(operation, codes, schemas),
    }
  }
  if (validatesInput(operation)) {
    refusals[422] = {
      description: ValidationError.description,
      headers: headersOf(),
      content: { [jsonType]: { schema: schemas.add(ValidationError, 'output') } },
    }
  }
  return refusals
}

function limitOf({ rate }: Operation, status: number): string[] {
  if (rate === undefined || status !== 429) return []
  const { burst, pace, perMinute } = rate
  return [
    `At most ${perMinute} requests a minute per organisation, ${burst} of them at once. A tenth of it stays for each branch of access tokens that asks for no more.`,
    ...(pace === undefined
      ? []
      : [`Of those at once, ${pace.atOnce} begin when they arrive, and then ${pace.perSecond} a second.`]),
  ]
}

function refusalContentOf(
  { refusalBodies = {}, refusalForm }: Operation,
  codes: readonly ErrorCode[],
  schemas: SchemaComponents,
): Record<string, object> {
  const own = codes.flatMap((code) => refusalBodies[code] ?? []).map((body) => schemas.add(body, 'output'))
  const plain = codes.filter((code) => refusalBodies[code] === undefined)
  const ours = [...own, ...(plain.length > 0 ? [errorBodyOf(plain, schemas)] : [])]
  const early = codes.filter((code) => formOf(code) !== 'protocol')
  if (refusalForm === undefined || codes.every((code) => formOf(code) === 'ours')) {
    return { [jsonType]: { schema: oneOf(ours) } }
  }
  const theirs = schemas.add(refusalForm.body, 'output')
  const asJson = early.length === 0 ? theirs : oneOf([theirs, errorBodyOf(early, schemas)])
  return Object.fromEntries(
    refusalForm.types.map((type) => [type, { schema: type === jsonType ? asJson : {} }]),
  )
}

/** The body of a refusal with one of these codes. */
function errorBodyOf(codes: readonly ErrorCode[], schemas: SchemaComponents): JsonSchema {
  return { allOf: [schemas.add(ErrorBody, 'output'), { properties: { code: { enum: codes } } }] }
}

function oneOf(schemas: readonly JsonSchema[]): JsonSchema {
  const [first, ...others] = schemas
  return first !== undefined && others.length === 0 ? first : { anyOf: schemas }
}
