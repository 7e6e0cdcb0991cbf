// The rule of wide comments finds each line that could have been wrapped, and no other.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findWideComments } from './comment-rules.ts'
import { parseSources } from './parse-sources.ts'

const wide = (text: string) => findWideComments(parseSources({ 'a.ts': text }), 20).map(({ path }) => path)

test('finds lines beyond the width, in every form of comment', () => {
  assert.deepEqual(wide('// A sentence too long.\n// It continues.'), ['a.ts:1'])
  assert.deepEqual(wide('/** A sentence too long. */\nconst a = 1'), ['a.ts:1'])
  assert.deepEqual(wide('/**\n * Short.\n * A sentence too long.\n */'), ['a.ts:3'])
  assert.deepEqual(wide('if (a) {\n    // Only too far right.\n}'), ['a.ts:2'])
  assert.deepEqual(wide('const a = 1 // And why it is.'), ['a.ts:1'])
})

test('accepts lines that fit, code, and lines without a space to wrap at', () => {
  assert.deepEqual(wide('// It is of twenty.'), [])
  assert.deepEqual(
    wide('// \u{1f600} \u{1f600} \u{1f600} \u{1f600} \u{1f600} \u{1f600} \u{1f600} \u{1f600}'),
    [],
  )
  assert.deepEqual(wide("const a = '// a string that is too long'"), [])
  assert.deepEqual(wide('// https://example.org/a/long/address'), [])
  assert.deepEqual(wide('/**\n * https://example.org/a/long/address\n */'), [])
  assert.deepEqual(wide('// biome-ignore lint/a/b: the reason is here'), [])
})
