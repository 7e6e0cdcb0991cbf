// Zod's issues as problems on the wire, one test for each kind of issue, and all of them at once. The tests
// assert the documented form: a location of strings, a type in Pydantic's vocabulary, the input, and facts in
// ctx.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { queryInt, refuse } from '../../../contract/values/fields.ts'
import { InstantInput } from '../../../contract/values/instant.ts'
import { problemsOf } from './schema-problems.ts'

function problems(schema: z.ZodType, input: unknown, part = 'body') {
  const result = schema.safeParse(input)
  if (result.success) assert.fail('The input is valid.')
  return problemsOf(part, result.error.issues, input)
}

const absent = (schema: z.ZodType) => problems(z.strictObject({ a: schema }), {})[0]
const wrong = (schema: z.ZodType, a: unknown) => {
  const [first, ...rest] = problems(z.strictObject({ a: schema }), { a })
  assert.deepEqual(rest, [])
  return { type: first?.type, input: first?.input, ctx: first?.ctx, msg: first?.msg }
}

test('a missing field has the value that should contain it as input', () => {
  const required = { loc: ['body', 'a'], type: 'missing', msg: 'Field required', input: {}, ctx: {} }
  for (const schema of [z.string(), z.number(), z.boolean(), z.array(z.string()), z.strictObject({})]) {
    assert.deepEqual(absent(schema), required)
  }
  assert.deepEqual(absent(z.enum(['x', 'y'])), required)
  assert.deepEqual(absent(z.literal('x')), required)
  assert.deepEqual(absent(InstantInput), required)
})

test('an absent body is missing as a whole', () => {
  assert.deepEqual(problems(z.strictObject({}), undefined), [
    { loc: ['body'], type: 'missing', msg: 'Field required', input: null, ctx: {} },
  ])
})

test('a property that every object inherits is missing too', () => {
  for (const name of ['toString', 'constructor', 'hasOwnProperty']) {
    const [found] = problems(z.strictObject({ [name]: z.string() }), {})
    assert.deepEqual([found?.loc, found?.type], [['body', name], 'missing'])
  }
})

test('a value of the wrong type has no other problem', () => {
  assert.deepEqual(
    problems(z.strictObject({ a: z.string().min(3).max(5) }), { a: ['x'] }).map(({ type }) => type),
    ['string_type'],
  )
})

test('null is not missing but of the wrong type', () => {
  assert.equal(wrong(z.string(), null).type, 'string_type')
  assert.equal(wrong(z.enum(['x']), null).type, 'enum')
})

test('each wrong type has its name in Pydantic’s vocabulary, and names the expected type', () => {
  for (const [schema, input, type, words] of [
    [z.string(), 5, 'string_type', 'string'],
    [z.number(), '5', 'float_type', 'number'],
    [z.int(), 'five', 'float_type', 'number'],
    [z.int(), 1.5, 'int_type', 'integer'],
    [z.boolean(), 'yes', 'bool_type', 'boolean'],
    [z.strictObject({}), [], 'dict_type', 'object'],
    [z.record(z.string(), z.string()), 'x', 'dict_type', 'object'],
    [z.array(z.string()), {}, 'list_type', 'list'],
  ] as const) {
    const found = wrong(schema, input)
    assert.deepEqual({ type: found.type, input: found.input, ctx: found.ctx }, { type, input, ctx: {} })
    assert.equal(found.msg, `Input should be a valid ${words}`)
  }
})

test('a word outside a list is refused with the list', () => {
  const found = wrong(z.enum(['range', 'all', 'none']), 'every')
  assert.deepEqual(found, {
    type: 'enum',
    msg: "Input should be 'range', 'all' or 'none'",
    input: 'every',
    ctx: { expected: "'range', 'all' or 'none'" },
  })
  assert.equal(wrong(z.literal('all'), 'every').ctx?.expected, "'all'")
})

test('a limit that was exceeded is named in ctx, for numbers, texts and lists', () => {
  for (const [schema, input, type, ctx] of [
    [z.int().min(1), 0, 'greater_than_equal', { ge: 1 }],
    [z.int().max(10), 11, 'less_than_equal', { le: 10 }],
    [z.string().min(2), 'x', 'string_too_short', { min_length: 2 }],
    [z.string().max(2), 'xyz', 'string_too_long', { max_length: 2 }],
    [z.array(z.string()).min(1), [], 'too_short', { min_length: 1 }],
    [z.array(z.string()).max(1), ['x', 'y'], 'too_long', { max_length: 1 }],
  ] as const) {
    const found = wrong(schema, input)
    assert.deepEqual({ type: found.type, input: found.input, ctx: found.ctx }, { type, input, ctx })
  }
})

test('exclusive bounds are not called inclusive', () => {
  assert.deepEqual(
    [wrong(z.number().gt(0), 0).type, wrong(z.number().gt(0), 0).ctx],
    ['greater_than', { gt: 0 }],
  )
  assert.deepEqual(
    [wrong(z.number().lt(1), 1).type, wrong(z.number().lt(1), 1).ctx],
    ['less_than', { lt: 1 }],
  )
})

test('every unknown field is a problem of its own, at its own location', () => {
  const inner = z.strictObject({ a: z.strictObject({ known: z.string() }) })
  assert.deepEqual(
    problems(inner, { a: { known: 'x', range_strat: 1, __proto: 2 } }).map(({ loc, type, input }) => ({
      loc,
      type,
      input,
    })),
    [
      { loc: ['body', 'a', 'range_strat'], type: 'extra_forbidden', input: 1 },
      { loc: ['body', 'a', '__proto'], type: 'extra_forbidden', input: 2 },
    ],
  )
})

test('a field named __proto__ is an unknown field and not the prototype', () => {
  const [found] = problems(z.strictObject({}), JSON.parse('{"__proto__": {"isAdmin": true}}'))
  assert.deepEqual(
    { loc: found?.loc, type: found?.type, input: found?.input },
    { loc: ['body', '__proto__'], type: 'extra_forbidden', input: { isAdmin: true } },
  )
})

test('a union names what it accepts', () => {
  const found = wrong(z.union([z.string(), z.number()]), true)
  assert.equal(found.type, 'value_error')
  assert.equal(found.msg, 'Input should be one of: string, number')
  assert.equal(found.input, true)
})

test('our own rules have their own type and context', () => {
  const even = z.int().transform((value, context) => {
    return value % 2 === 0 ? value : refuse(context, 'value_error', 'Input should be even', { remainder: 1 })
  })
  assert.deepEqual(wrong(even, 3), {
    type: 'value_error',
    msg: 'Input should be even',
    input: 3,
    ctx: { remainder: 1 },
  })
  const plain = z.string().refine((value) => value === 'x', { error: 'Input should be x' })
  assert.deepEqual(wrong(plain, 'y'), { type: 'value_error', msg: 'Input should be x', input: 'y', ctx: {} })
})

test('patterns and formats are value errors with their sentence', () => {
  const found = wrong(z.string().regex(/^a+$/, { error: 'Use only a.' }), 'b')
  assert.deepEqual(found, { type: 'value_error', msg: 'Use only a.', input: 'b', ctx: {} })
})

test('text of a query string that is not an integer has int_parsing, and bounds have their own types', () => {
  const limit = queryInt({ min: 1, max: 500, fallback: 50, describe: '' })
  for (const text of ['', 'x', '1.0', '1e2', ' 1', '+1', '9'.repeat(16)]) {
    assert.equal(wrong(limit, text).type, 'int_parsing', JSON.stringify(text))
  }
  assert.deepEqual([wrong(limit, '0').type, wrong(limit, '0').ctx], ['greater_than_equal', { ge: 1 }])
  assert.deepEqual([wrong(limit, '-1').type, wrong(limit, '-1').ctx], ['greater_than_equal', { ge: 1 }])
  assert.deepEqual([wrong(limit, '501').type, wrong(limit, '501').ctx], ['less_than_equal', { le: 500 }])
  assert.equal(wrong(limit, ['1', '2']).type, 'string_type')
})

test('every location consists of strings, list positions included, and begins with the part of the request', () => {
  const schema = z.strictObject({ list: z.array(z.strictObject({ x: z.int() })) })
  const found = problems(schema, { list: [{ x: 1 }, { x: 'two' }] }, 'query')
  assert.deepEqual(found[0]?.loc, ['query', 'list', '1', 'x'])
  assert.equal(found[0]?.input, 'two')
})

test('all problems of an input are in one response', () => {
  const schema = z.strictObject({
    name: z.string().min(1),
    role: z.enum(['owner', 'viewer']),
    days: z.int().min(1),
    when: InstantInput,
  })
  const found = problems(schema, { name: '', role: 'king', days: 0, when: 'soon', colour: 'red' })
  assert.deepEqual(found.map(({ loc, type }) => `${loc.join('.')} ${type}`).sort(), [
    'body.colour extra_forbidden',
    'body.days greater_than_equal',
    'body.name string_too_short',
    'body.role enum',
    'body.when datetime_parsing',
  ])
})

test('an input with the type of one branch of a union has the problems of that branch', () => {
  const key = z.string().min(1)
  const schema = z.strictObject({ by: z.union([key, z.array(key).max(2)]) })
  const problemsWith = (by: unknown) =>
    problems(schema, { by }).map(({ loc, type, input }) => [loc.join('.'), type, input])
  assert.deepEqual(problemsWith(''), [['body.by', 'string_too_short', '']])
  assert.deepEqual(problemsWith(['a', 'b', 'c']), [['body.by', 'too_long', ['a', 'b', 'c']]])
  assert.deepEqual(problemsWith(['a', '']), [['body.by.1', 'string_too_short', '']])
  assert.deepEqual(problemsWith(5), [['body.by', 'value_error', 5]])
})
