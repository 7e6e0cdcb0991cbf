// The contrast of every pair of text and ground, and of every mark that carries meaning, in both schemes, as
// WCAG 2.2 computes it from the tokens themselves: 1.4.3 for text, 1.4.11 for edges, states and charts.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

const css = readFileSync(new URL('tokens.css', import.meta.url), 'utf8')

type Tokens = ReadonlyMap<string, string>

/** The colours of the block with this selector. */
function tokensOf(selector: string): Tokens {
  const begin = css.indexOf(`${selector} {`)
  assert.notEqual(begin, -1, selector)
  const block = css.slice(begin, css.indexOf('}', begin))
  return new Map(
    [...block.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name = '', hex = '']) => [name, hex]),
  )
}

const schemes = {
  light: tokensOf(':root'),
  dark: tokensOf(':root[data-mantine-color-scheme="dark"]'),
} as const

/** Relative luminance of a colour such as `#0f62c4`, from 0 to 1. */
function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** Contrast ratio of two colours, from 1 to 21. */
function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

const [textMin, markMin] = [4.5, 3]

/** Colours that are used on both grounds: the page, and surfaces such as notices and hovered controls. */
const grounds = ['bg', 'surface']
const texts = ['text', 'muted', 'accent', 'danger', 'alarm', 'ok', 'warn']
const marks = ['edge', ...Array.from({ length: 6 }, (_, i) => `series-${i + 1}`)]

const pairs = [
  ...texts.flatMap((text) => grounds.map((ground) => [text, ground, textMin] as const)),
  ['on-accent', 'accent', textMin] as const,
  ['on-danger', 'danger', textMin] as const,
  // Charts are drawn on the page only.
  ...marks.map((mark) => [mark, 'bg', markMin] as const),
  ['edge', 'surface', markMin] as const,
]

test('the contrast of known colours is that of WCAG', () => {
  assert.equal(contrast('#000000', '#ffffff'), 21)
  assert.equal(contrast('#777777', '#777777'), 1)
  // The greys on white that are just below and just above 4.5.
  assert.equal(contrast('#777777', '#ffffff').toFixed(2), '4.48')
  assert.equal(contrast('#767676', '#ffffff').toFixed(2), '4.54')
})

for (const [scheme, tokens] of Object.entries(schemes)) {
  test(`every text has 4.5:1 and every mark 3:1 on its ground, ${scheme}`, () => {
    const colourOf = (name: string) => tokens.get(name) ?? assert.fail(`no colour ${name}`)
    const low = pairs
      .map(([front, ground, min]) => ({
        front,
        ground,
        min,
        is: contrast(colourOf(front), colourOf(ground)),
      }))
      .filter(({ is, min }) => is < min)
    assert.deepEqual(low, [])
  })
}

test('both schemes have the same colours, and each one is in a pair or is a line that only divides', () => {
  const names = [...schemes.light.keys()].sort()
  assert.deepEqual([...schemes.dark.keys()].sort(), names)
  const paired = new Set(pairs.flat())
  assert.deepEqual(
    names.filter((name) => !paired.has(name)),
    ['border'],
  )
})
