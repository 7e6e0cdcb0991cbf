// Compares the scanner with a parser that counts by recursion, on JSON and on JSON with changed bytes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type JsonBounds,
  type JsonExcess,
  JsonExcessError,
  jsonExcess,
  parseBoundedJson,
} from './json-bounds.ts'

const wide: JsonBounds = { depth: 1000, values: 1e6, containers: 1e6, shapes: 1e6 }
const excessOf = (text: string, bounds: Partial<JsonBounds> = {}) =>
  jsonExcess(Buffer.from(text), { ...wide, ...bounds })

/** Counts of a text, by a walk over its value and its names as they are written. */
function countsOf(text: string): JsonBounds {
  const counts = { depth: 0, values: 0, containers: 0 }
  const shapes = new Set<string>()
  let at = 0
  const token = (): string => {
    const found = /\s*([[\]{},:]|"(?:[^"\\]|\\.)*"|[^\s[\]{},:"]+)/y
    found.lastIndex = at
    const [whole = '', word = ''] = found.exec(text) ?? []
    at += whole.length
    return word
  }
  const peek = (): string => {
    const before = at
    const word = token()
    at = before
    return word
  }
  const value = (depth: number): void => {
    counts.values++
    const first = token()
    if (first !== '[' && first !== '{') return
    counts.containers++
    counts.depth = Math.max(counts.depth, depth)
    const end = first === '[' ? ']' : '}'
    let names = ''
    while (peek() !== end) {
      if (first === '{') {
        names += token()
        shapes.add(names)
        counts.values++
        token()
      }
      value(depth + 1)
      if (peek() === ',') token()
    }
    token()
  }
  value(1)
  return { ...counts, shapes: shapes.size }
}

const json = fc.oneof(
  fc.json({ maxDepth: 6 }),
  fc.jsonValue({ maxDepth: 6 }).map((value) => JSON.stringify(value, null, 2)),
  fc.json({ stringUnit: 'binary', maxDepth: 4 }),
)

const kinds: readonly JsonExcess[] = ['depth', 'values', 'containers', 'shapes']

test('any JSON is within its own counts, and beyond each count that is smaller by one', () => {
  fc.assert(
    fc.property(json, (text) => {
      const counts = countsOf(text)
      assert.equal(jsonExcess(Buffer.from(text), counts), null)
      for (const kind of kinds) {
        if (counts[kind] === 0) continue
        const fewer = { ...wide, [kind]: counts[kind] - 1 }
        assert.equal(jsonExcess(Buffer.from(text), fewer), kind)
      }
    }),
    { numRuns: 2_000 },
  )
})

test('no bytes make the scanner throw, and broken JSON is either refused with a reason or left to the parser', () => {
  const broken = fc
    .tuple(json, fc.nat(), fc.constantFrom(...'[]{}",:\\ \n0-eE.tnf', '\u0000', 'é'))
    .map(([text, at, put]) => {
      const position = at % (text.length + 1)
      return text.slice(0, position) + put + text.slice(position + 1)
    })
  fc.assert(
    fc.property(fc.oneof(broken, fc.string({ unit: 'binary' })), fc.nat(20), (text, most) => {
      const bounds = { depth: most, values: most, containers: most, shapes: most }
      try {
        parseBoundedJson(text, bounds)
      } catch (error) {
        assert.ok(error instanceof JsonExcessError || error instanceof SyntaxError, String(error))
      }
    }),
    { numRuns: 2_000 },
  )
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      jsonExcess(bytes, wide, [])
    }),
  )
})

test('the content of a text counts as one text', () => {
  assert.equal(excessOf('"[[[[{{{{,,,,1,2,3"', { depth: 0, values: 1, containers: 0 }), null)
  assert.equal(excessOf('"\\"[["', { depth: 0, values: 1 }), null)
  assert.equal(excessOf('"\\\\",[[', { depth: 1 }), 'depth')
  assert.equal(excessOf('"\\\\\\"[["', { depth: 0 }), null)
})

test('a text of opening brackets is refused at the bound and not at its end', () => {
  assert.equal(excessOf('['.repeat(65)), null)
  assert.equal(excessOf('['.repeat(65), { depth: 64 }), 'depth')
  assert.equal(excessOf('{"a":'.repeat(65), { depth: 64 }), 'depth')
})

test('depth is that of one branch, and ends with it', () => {
  assert.equal(excessOf(`[${'[[]],'.repeat(500)}1]`, { depth: 3 }), null)
  assert.equal(excessOf(']]]][[', { depth: 2 }), null)
})

test('objects with the same names are one shape however many they are; other names or another order are another', () => {
  const objects = (make: (i: number) => string) =>
    `[${Array.from({ length: 300 }, (_, i) => make(i)).join(',')}]`
  assert.equal(
    excessOf(
      objects(() => '{"a":1,"b":2}'),
      { shapes: 2 },
    ),
    null,
  )
  assert.equal(
    excessOf(
      objects((i) => `{"a${i}":1}`),
      { shapes: 299 },
    ),
    'shapes',
  )
  assert.equal(excessOf('[{"a":1,"b":2},{"b":1,"a":2}]', { shapes: 3 }), 'shapes')
  assert.equal(excessOf('[{"ab":1},{"a":1,"b":2}]', { shapes: 2 }), 'shapes')
  assert.equal(excessOf('["a","b","c",{"a":["b","c",{"a":"d"}]}]', { shapes: 1 }), null)
})

test('integers that a double may round are found where they are values, and nowhere else', () => {
  const found = (text: string) => {
    const positions: number[] = []
    jsonExcess(Buffer.from(text), wide, positions)
    return positions.flatMap((at, i) => (i % 2 === 0 ? [text.slice(at, positions[i + 1])] : []))
  }
  assert.deepEqual(found('{"a":1700000000000000000,"b":[-9223372036854775808 , 5]}'), [
    '1700000000000000000',
    '-9223372036854775808',
  ])
  assert.deepEqual(found('1700000000000000000'), ['1700000000000000000'])
  for (const text of [
    '"at 1700000000000000000"',
    '[1700000000000000000.5]',
    '[1700000000000000000e2]',
    '[00000000000000000017]',
    '[123456789012345]',
    '[-123456789012345]',
    '{1700000000000000000:1}',
    '[1700000000000000000 "x"]',
  ]) {
    assert.deepEqual(found(text), [], text)
  }
})
