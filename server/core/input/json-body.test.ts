// Strict JSON: what a person sees in a body is what is used, and no body makes the parser throw.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readJsonBody } from './json-body.ts'

const read = (text: string | Buffer) => readJsonBody(Buffer.from(text))

function problems(text: string | Buffer) {
  const { value, problems } = read(text)
  assert.notEqual(problems.length, 0, `It was read as ${JSON.stringify(value)}`)
  return problems
}

test('every JSON value is parsed as JSON.parse does', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      assert.deepEqual(read(text), { value: JSON.parse(text), problems: [] })
    }),
  )
})

test('an empty body is no value at all, and white space is an error', () => {
  assert.deepEqual(read(''), { value: undefined, problems: [] })
  assert.equal(problems('  ')[0]?.type, 'json_invalid')
})

test('a repeated name is a problem at its location, at any depth, once for each repetition', () => {
  const found = problems('{"a":1,"a":2,"b":{"c":[{"d":1},{"d":1,"e":0,"d":{"x":1},"d":3}]}}')
  assert.deepEqual(
    found.map(({ loc, type, input }) => [loc.join('.'), type, input]),
    [
      ['body.a', 'value_error', 2],
      ['body.b.c.1.d', 'value_error', null],
      ['body.b.c.1.d', 'value_error', 3],
    ],
  )
})

test('a name that is repeated with escapes is the same name', () => {
  assert.deepEqual(problems('{"range_end":1,"range_\\u0065nd":2}')[0]?.loc, ['body', 'range_end'])
})

test('the same name in different objects is not a repetition', () => {
  assert.deepEqual(read('{"a":{"b":1},"c":{"b":1}}'), { value: { a: { b: 1 }, c: { b: 1 } }, problems: [] })
})

test('__proto__ and constructor are names like any other, and change no prototype', () => {
  const result = read('{"__proto__":{"isAdmin":true},"constructor":1}')
  assert.ok('value' in result)
  const value = result.value as object
  assert.deepEqual(Object.keys(value), ['__proto__', 'constructor'])
  assert.equal(Object.getPrototypeOf(value), Object.prototype)
  assert.equal(Reflect.get({}, 'isAdmin'), undefined)
  assert.equal(problems('{"__proto__":1,"__proto__":2}').length, 1)
})

test('a body with too many levels or values is refused with what it has too much of', () => {
  const depths = [65, 5_000, 32_000].flatMap((depth) => [
    '['.repeat(depth) + ']'.repeat(depth),
    `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`,
    '['.repeat(depth),
  ])
  for (const text of depths) {
    assert.deepEqual(problems(text), [
      {
        loc: ['body'],
        type: 'json_invalid',
        msg: 'The body cannot be read: nested too deeply, the limit is 64',
        input: null,
        ctx: { error: 'nested too deeply' },
      },
    ])
  }
  const values = (count: number) => `[${Array.from({ length: count - 1 }, () => '1').join()}]`
  assert.deepEqual(read(values(2_048)).problems, [])
  assert.equal(problems(values(2_049))[0]?.ctx.error, 'too many values')
  assert.deepEqual(read(`${'['.repeat(64)}${']'.repeat(64)}`).problems, [])
})

test('bytes that are not UTF-8 are refused rather than repaired', () => {
  for (const bytes of [
    [0x22, 0xff, 0x22],
    [0x22, 0xc0, 0xaf, 0x22],
    [0x22, 0xed, 0xa0, 0x80, 0x22],
  ]) {
    assert.deepEqual(problems(Buffer.from(bytes)), [
      {
        loc: ['body'],
        type: 'json_invalid',
        msg: 'The body is not valid UTF-8',
        input: null,
        ctx: { error: 'invalid UTF-8' },
      },
    ])
  }
})

test('what is not JSON is refused with its position and without a quotation of the body', () => {
  const secret = 'lethe_owner_verysecret'
  for (const text of [
    `{"token": ${secret}}`,
    `{"token": "${secret}"`,
    `{'token': '${secret}'}`,
    `${secret}`,
  ]) {
    const [found] = problems(text)
    assert.equal(found?.type, 'json_invalid')
    assert.doesNotMatch(JSON.stringify(found), /verysecret|lethe_/)
  }
  assert.match(problems('{"a" 1}')[0]?.msg ?? '', /unexpected character at position 5/)
})

test('comments, trailing commas and bare NaN are not JSON', () => {
  for (const text of ['{"a":1,}', '{"a":1}//', '/**/{}', 'NaN', '{a:1}', '[1,]', '{"a":1}{"b":2}']) {
    assert.equal(problems(text)[0]?.type, 'json_invalid', text)
  }
})

test('no bytes make the parser throw', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      readJsonBody(Buffer.from(bytes))
    }),
  )
})

test('a lone surrogate is a problem at its location, in a value and in a name', () => {
  const found = problems('{"a":"\\ud83d\\ude00","b":["x\\ud800"],"\\udc00":1}')
  assert.deepEqual(
    found.map(({ loc, type }) => [JSON.stringify(loc), type]),
    [
      ['["body","b","0"]', 'string_unicode'],
      ['["body","\\udc00"]', 'string_unicode'],
    ],
  )
})
