// Every operation has examples of its bodies and of the parameters in its path, and each example matches its
// schema: no field is missing, and no field is unknown.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { openApiDocument } from '../openapi/document.ts'
import { bodyTypesOf, jsonType, type Operation, type Success } from '../operation.ts'
import { everyOperation } from '../operations/every.ts'
import { pathExamples } from './params.ts'

const shown = everyOperation.filter(({ isHidden }) => isHidden !== true)

const wantsJson = (operation: Operation) =>
  operation.body !== undefined && !isEmptyAllowed(operation) && bodyTypesOf(operation).includes(jsonType)

/** Whether the operation means the same without a body, as most clients send it. */
function isEmptyAllowed({ body, protocol }: Operation): boolean {
  return protocol === undefined && body?.safeParse(undefined).success === true
}

const isText = (type: string) => type.endsWith('json')

const answersText = ({ body, types = [jsonType] }: Success<z.ZodType>) =>
  !(body instanceof z.ZodUndefined) && types.some(isText)

const answersOf = ({ results }: Operation) => Object.entries<Success<z.ZodType>>(results)

for (const operation of shown) {
  describe(`${operation.method} ${operation.path}`, () => {
    const { body, bodyExample } = operation
    if (wantsJson(operation)) {
      test('has an example of its body, which its schema accepts', () => {
        assert.notEqual(bodyExample, undefined)
        const read = body?.safeParse(bodyExample)
        assert.deepEqual(read?.error?.issues ?? [], [])
      })
    }
    for (const [status, success] of answersOf(operation).filter(([, one]) => answersText(one))) {
      test(`has an example of its ${status}, with exactly the fields of its schema`, () => {
        assert.notEqual(success.example, undefined)
        assert.deepEqual(success.body.parse(success.example), success.example)
      })
    }
  })
}

test('every parameter in a path has an example, which its schema accepts', () => {
  for (const { params, path } of shown) {
    const names = [...path.matchAll(/:([a-z_]+)/g)].map(([, name = '']) => name)
    const example = Object.fromEntries(names.map((name) => [name, pathExamples[name]]))
    assert.deepEqual(params?.safeParse(example).error?.issues ?? [], [], path)
    assert.deepEqual(names.length > 0, params !== undefined, path)
  }
})

test('only a request and a response without text have no example', () => {
  const without = shown.filter(
    ({ bodyExample, params, results }) =>
      bodyExample === undefined &&
      params === undefined &&
      Object.values(results).every(({ example }) => example === undefined),
  )
  assert.deepEqual(
    without.map(({ method, path }) => `${method} ${path}`),
    ['DELETE /session', 'POST /api/v1/write'],
  )
})

test('the OpenAPI document has every example', () => {
  const { paths } = z
    .object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) })
    .parse(openApiDocument(everyOperation, '9'))
  const contents = z.record(z.string(), z.looseObject({ example: z.unknown().optional() }))
  const Described = z.object({
    parameters: z
      .array(z.looseObject({ in: z.string(), name: z.string(), example: z.unknown().optional() }))
      .optional(),
    requestBody: z.object({ content: contents }).optional(),
    responses: z.record(z.string(), z.object({ content: contents.optional() })),
  })
  for (const operation of shown) {
    const path = operation.path.replace(/:([a-z_]+)/g, '{$1}')
    const {
      parameters = [],
      requestBody,
      responses,
    } = Described.parse(paths[path]?.[operation.method.toLowerCase()])
    for (const { name, example } of parameters.filter((parameter) => parameter.in === 'path'))
      assert.equal(example, pathExamples[name], `${path} ${name}`)
    for (const [type, { example }] of Object.entries(requestBody?.content ?? {})) {
      assert.deepEqual(example, isText(type) ? operation.bodyExample : undefined, `${path} ${type}`)
    }
    for (const [status, success] of answersOf(operation).filter(([, one]) => answersText(one))) {
      const type = (success.types ?? [jsonType]).find(isText) ?? ''
      assert.deepEqual(responses[status]?.content?.[type]?.example, success.example, `${path} ${status}`)
    }
  }
})

test('a missing field and an unknown field of an example are detected', () => {
  const schema = z.object({ id: z.string() })
  assert.equal(schema.safeParse({}).success, false)
  const extra = { id: 'a', more: 1 }
  assert.notDeepEqual(schema.parse(extra), extra)
})
