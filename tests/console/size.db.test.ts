// How many bytes a browser loads before it shows the first page, and for each later page. Measured on the
// build that is served, compressed as it is sent.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type BuiltFiles, buildConsole } from '../../server/http/console/console-build.ts'

const [firstLoadMax, fileMax] = [300_000, 40_000]

let files: BuiltFiles
before(async () => {
  files = await buildConsole()
})

const sizeOf = (path: string) => gzipSync(files.get(path) ?? assert.fail(path), { level: 9 }).length

/** Scripts and styles that the page itself names, and the scripts that those import at once. */
function firstLoad(): Set<string> {
  const page = files.get('index.html')?.toString() ?? assert.fail('no page')
  const loaded = new Set([...page.matchAll(/\/console\/(assets\/[\w.-]+)/g)].map(([, path]) => path ?? ''))
  for (const path of loaded) {
    const text = path.endsWith('.js') ? (files.get(path)?.toString() ?? '') : ''
    for (const [, name] of text.matchAll(/(?:from|import)\s*"\.\/([\w.-]+\.js)"/g))
      loaded.add(`assets/${name}`)
  }
  return loaded
}

test('the first load is at most 300 kB, and no later file more than 40 kB', (t) => {
  const first = firstLoad()
  assert.ok(first.size >= 2, [...first].join())
  const sum = [...first].reduce((bytes, path) => bytes + sizeOf(path), 0)
  const kb = (bytes: number) => `${(bytes / 1000).toFixed(1)} kB`
  const sizes = [...first].map((path) => `${path} ${kb(sizeOf(path))}`)
  t.diagnostic(`first load ${kb(sum)}: ${sizes.join(', ')}`)
  assert.ok(sum <= firstLoadMax, `${sum} bytes: ${[...first].join(', ')}`)
  const later = [...files.keys()].filter((path) => path.startsWith('assets/') && !first.has(path))
  assert.ok(later.length >= 5, 'pages are loaded when they are opened')
  const largest = later.toSorted((a, b) => sizeOf(b) - sizeOf(a))[0] ?? ''
  t.diagnostic(`${later.length} later files, the largest ${largest} ${kb(sizeOf(largest))}`)
  for (const path of later) assert.ok(sizeOf(path) <= fileMax, `${path}: ${sizeOf(path)} bytes`)
})

/** Names of the classes of Mantine in these files. */
function mantineClasses(texts: Iterable<string | Buffer>): Set<string> {
  return new Set([...texts].flatMap((text) => String(text).match(/\bm_[0-9a-f]{6,8}\b/g) ?? []))
}

test('each part of Mantine in the bundle has its style, and the styles of all others are left out', () => {
  const whole = readFileSync(createRequire(import.meta.url).resolve('@mantine/core/styles.css'), 'utf8')
  const styled = mantineClasses([whole])
  const built = [...files]
  const scripts = built.filter(([path]) => path.endsWith('.js')).map(([, text]) => text)
  const styles = built.filter(([path]) => path.endsWith('.css')).map(([, text]) => text)
  const wanted = mantineClasses(scripts).intersection(styled)
  const found = mantineClasses(styles)
  assert.ok(wanted.size > 50, `${wanted.size} classes`)
  assert.deepEqual([...wanted.difference(found)], [])
  // A style sheet has all parts of its component, so it has more classes than the bundle.
  assert.ok(found.size < 2 * wanted.size && found.size < styled.size / 2, `${found.size} of ${styled.size}`)
})

test('no file has a schema of the contract, an example or the address of another host', () => {
  const text = [...files.values()].map(String).join('\n')
  assert.doesNotMatch(text, /_zod\b|ZodObject/)
  assert.doesNotMatch(text, /Acme Shop/)
  assert.doesNotMatch(text, /(?:src|href)="https?:/)
})
