// Bound values through the real engine and back. Senders of telemetry choose these strings, so they are
// random here, with the characters that have a meaning somewhere on the way: quotes, backslashes, braces,
// tabs.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { latestNs } from '../../contract/values/instant.ts'
import { engineOfFile } from '../../tests/fixtures.ts'
import { bytes, instant, sql, strings, uint } from './sql.ts'

const engine = engineOfFile()

/** Mostly characters with a meaning in SQL, in the engine's escaping or in JSON, mixed with any others. */
const hostile = fc.oneof(
  fc.string({
    unit: fc.constantFrom(
      "'",
      '"',
      '`',
      '\\',
      '\n',
      '\t',
      '\r',
      '\0',
      '{',
      '}',
      ':',
      '%',
      'n',
      'N',
      '-',
      ';',
    ),
  }),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom(
    "' or 1=1 --",
    "'; drop table otel_logs; --",
    '{p0:String}',
    '\\N',
    '\\x00',
    '\u2028',
    'NULL',
    '',
  ),
)

test('a string is returned unchanged, whatever its content', async () => {
  await fc.assert(
    fc.asyncProperty(hostile, async (text) => {
      const [row] = await engine.select<{ text: string }>(sql`select ${text} as text`)
      assert.equal(row?.text, text)
    }),
    { numRuns: 300 },
  )
})

test('a string is compared as a whole: it equals itself and nothing else', async () => {
  await fc.assert(
    fc.asyncProperty(hostile, hostile, async (a, b) => {
      const [row] = await engine.select<{ same: number }>(sql`select ${a} = ${b} as same`)
      assert.equal(row?.same, a === b ? 1 : 0)
    }),
    { numRuns: 100 },
  )
})

test('a list of strings is returned unchanged', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(hostile, { maxLength: 6 }), async (list) => {
      const [row] = await engine.select<{ list: string[] }>(sql`select ${strings(list)} as list`)
      assert.deepEqual(row?.list, list)
    }),
    { numRuns: 200 },
  )
})

test('bytes are returned unchanged, each of the 256 beside each other', async () => {
  const all = Array.from({ length: 256 }, (_, byte) => byte)
  for (const given of [all, all.toReversed(), ...all.map((byte) => [byte, 0x30, byte])]) {
    const [row] = await engine.select<{ hex: string; bytes: number }>(
      sql`select hex(${bytes(...given)}) as hex, toUInt32(length(${bytes(...given)})) as bytes`,
    )
    assert.deepEqual(row, { hex: Buffer.from(given).toString('hex').toUpperCase(), bytes: given.length })
  }
})

test('an instant is exact to the nanosecond, from the first to the last that can be stored', async () => {
  await fc.assert(
    fc.asyncProperty(fc.bigInt({ min: 0n, max: latestNs }), async (ns) => {
      const [row] = await engine.select<{ ns: string }>(
        sql`select toUnixTimestamp64Nano(${instant(ns)}) as ns`,
      )
      assert.equal(BigInt(row?.ns ?? '-1'), ns)
    }),
    { numRuns: 100 },
  )
})

test('unsigned integers of 64 bits are exact', async () => {
  await fc.assert(
    fc.asyncProperty(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), async (integer) => {
      const [row] = await engine.select<{ integer: string }>(sql`select ${uint(integer)} as integer`)
      assert.equal(BigInt(row?.integer ?? '-1'), integer)
    }),
    { numRuns: 100 },
  )
})

test('after all of these statements the tables still exist', async () => {
  const [row] = await engine.select<{ rows: string }>(sql`select count() as rows from otel_logs`)
  assert.equal(Number(row?.rows), 0)
})
