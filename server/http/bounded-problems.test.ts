// The worst bodies that the limits admit, with a declaration that has every kind of field: whatever is wrong
// with a body, and however often, its refusal is small and counts what it leaves out.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import pino from 'pino'
import { z } from 'zod'
import { ValidationError, type ValidationProblem } from '../../contract/errors.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import { InvalidInput, problem } from '../core/app-error.ts'
import { problemsOf } from '../core/input/schema-problems.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { byAccessToken } from './authentication.ts'
import { testOperation } from './operation-fixture.ts'
import { serve } from './serve.ts'
import { createHttp } from './server.ts'

const bodyBytes = 64 * 1024
const answerBytesMax = 68 * 1024
const problemsMax = 50

const item = z.strictObject({
  a: z.string(),
  b: z.int(),
  c: z.enum(['x', 'y']),
  d: z.boolean(),
  e: z.number(),
})
const Wide = z.strictObject({
  list: z.array(item).optional(),
  texts: z.array(z.string().min(3)).optional(),
  record: z.record(z.string().max(5), z.union([z.string(), z.array(item), item])).optional(),
  names: z.record(z.string(), item).optional(),
})

let received: readonly ValidationProblem[] = []
const http = createHttp({
  clock: new ManualClock(1_763_717_400_000),
  logger: pino({ level: 'silent' }),
  authenticate: byAccessToken(async () => ({
    tenantId: 'acme',
    placement: 0,
    organisationName: 'Acme',
    role: 'owner',
    requester: tokenNamed('owner'),
  })),
  isReady: () => true,
})
serve(http, testOperation({ method: 'POST', path: '/wide', body: Wide, result: z.object({}) }), {
  parse: () => ({ problems: [problem(['body', 'confirm'], 'value_error', 'It is wrong', null)] }),
  onInvalid: async (_caller, problems) => {
    received = problems
  },
  handle: async () => ({ body: {} }),
})
after(() => http.close())

async function refusalOf(body: string) {
  const answer = await http.inject({
    method: 'POST',
    url: '/wide',
    headers: { authorization: 'Bearer a-token', 'content-type': 'application/json' },
    payload: body,
  })
  assert.equal(answer.statusCode, 422)
  assert.ok(answer.rawPayload.length <= answerBytesMax, `${answer.rawPayload.length} bytes`)
  const { detail } = ValidationError.parse(answer.json())
  assert.ok(detail.length <= problemsMax + 1, `${detail.length} problems`)
  return detail
}

const fill = (make: (i: number) => string, bytes = bodyBytes - 200) => {
  const items: string[] = []
  for (let [i, size] = [0, 0]; ; i++) {
    const item = make(i)
    size += Buffer.byteLength(item) + 1
    if (size > bytes) return items.join(',')
    items.push(item)
  }
}
const long = 'n'.repeat(30_000)

const worst: Readonly<Record<string, string>> = {
  'unknown names': `{${fill((i) => `"k${i}":0`, 8_000)}}`,
  'unknown names beyond the bound of values': `{${fill((i) => `"k${i}":0`)}}`,
  'one name again and again': `{${fill(() => '"a":0', 6_000)}}`,
  'a long name again and again': `{${fill(() => `"${long}":0`)}}`,
  'mistyped items': `{"list":[${fill(() => '1', 4_000)}]}`,
  'items without their fields': `{"list":[${fill(() => '{}', 6_000)}]}`,
  'long inputs in items without their fields': `{"list":[${fill(() => `{"z":"${'z'.repeat(2_000)}"}`)}]}`,
  'mistyped items below a long name': `{"record":{"${long}":[${fill(() => '1', 4_000)}]}}`,
  'items below a long name': `{"record":{"${long}":[${fill(() => '{}', 6_000)}]}}`,
  'fields below a long name': `{"names":{"${long}":{${fill((i) => `"k${i}":0`, 8_000)}}}}`,
  'repeated names below a long name': `{"names":{"${long}":{${fill(() => '"k":0', 6_000)}}}}`,
  'control characters': `{"texts":[${fill(() => `"${'\\u0001'.repeat(2)}"`, 40_000)}],"${'\\u0001'.repeat(1_000)}":0}`,
  'characters of four bytes': `{${fill((i) => `"${'😀'.repeat(200)}${i}":"${'😀'.repeat(200)}"`)}}`,
  'no object': `"${'x'.repeat(60_000)}"`,
  'deep arrays': `{"list":${'['.repeat(30_000)}${']'.repeat(30_000)}}`,
  'deep objects': `${'{"a":'.repeat(60)}1${'}'.repeat(60)}`,
}

for (const [what, body] of Object.entries(worst)) {
  test(`a body of ${what} has a small refusal`, async () => {
    assert.ok(Buffer.byteLength(body) <= bodyBytes)
    await refusalOf(body)
  })
}

test('the last problem counts those that are not shown, of all lists together', async () => {
  const unknown = Array.from({ length: 300 }, (_, i) => `"k${i}":0`)
  const detail = await refusalOf(`{${unknown.join(',')}}`)
  assert.equal(detail.length, problemsMax + 1)
  const more = 300 - problemsMax + 1
  assert.deepEqual(detail.at(-1), {
    loc: ['body'],
    msg: `${more} more problems are not shown; correct the others and send it again`,
    type: 'more_problems',
    input: null,
    ctx: { more },
  })
})

test('a listener of refused input receives a problem of our own rule behind any number of unknown fields', async () => {
  await refusalOf(`{${Array.from({ length: 300 }, (_, i) => `"k${i}":0`).join(',')}}`)
  assert.ok(received.some(({ loc }) => loc[1] === 'confirm'))
  assert.ok(received.length <= 2 * problemsMax)
})

test('fifty problems are shown in full, and short input is unchanged', async () => {
  const body = Object.fromEntries(Array.from({ length: 49 }, (_, i) => [`k${i}`, { i, text: 'short' }]))
  const detail = await refusalOf(JSON.stringify(body))
  assert.equal(detail.length, 50)
  assert.deepEqual(detail[7]?.loc, ['body', 'k7'])
  assert.deepEqual(detail[7]?.input, { i: 7, text: 'short' })
})

test('shortened input says so, and how much is missing', async () => {
  const [found] = await refusalOf(
    JSON.stringify({ ['n'.repeat(1_000)]: ['x'.repeat(1_000), ...Array(900).fill(0)] }),
  )
  assert.equal(found?.loc[1], `${'n'.repeat(100)}… (900 more characters)`)
  const input = found?.input as unknown[]
  assert.equal(input[0], `${'x'.repeat(300)}… (700 more characters)`)
  assert.match(String(input.at(-1)), /^… \(\d+ more\)$/)
})

test('any JSON at all has a small refusal', async () => {
  await fc.assert(
    fc.asyncProperty(fc.json({ maxDepth: 5 }), async (text) => {
      await refusalOf(text)
    }),
    { numRuns: 200 },
  )
})

test('problems are created only as far as they are shown', () => {
  const input = { texts: Array.from({ length: 10_000 }, () => 1) }
  const result = Wide.safeParse(input)
  if (result.success) assert.fail('The input is valid.')
  const found = problemsOf('body', result.error.issues, input)
  assert.deepEqual([found.length, found.at(-1)?.ctx.more], [problemsMax + 1, 10_000 - problemsMax])
  let made = 0
  const counted = new Proxy(input, {
    getOwnPropertyDescriptor(...args) {
      made++
      return Reflect.getOwnPropertyDescriptor(...args)
    },
  })
  problemsOf('body', result.error.issues, counted)
  assert.equal(made, problemsMax)
})

test('a refusal that a feature creates itself is limited as well', () => {
  const { problems, message } = new InvalidInput(
    Array.from({ length: 10_000 }, (_, i) =>
      problem([`part ${i}`, long], 'value_error', long, long, { long, other: [long] }),
    ),
  )
  assert.ok(JSON.stringify(problems).length <= answerBytesMax)
  assert.ok(message.length <= answerBytesMax)
  assert.equal(Number(problems.at(-1)?.ctx.more) + problems.length - 1, 10_000)
})
