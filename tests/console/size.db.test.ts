// How much a browser loads before it shows the first page, and for each page after it. Measured on the build
// that is served, compressed as it is sent.

import assert from 'node:assert/strict'
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

test('the first load is at most 300 kB, and no later file more than 40 kB', () => {
  const first = firstLoad()
  assert.ok(first.size >= 2, [...first].join())
  const sum = [...first].reduce((bytes, path) => bytes + sizeOf(path), 0)
  assert.ok(sum <= firstLoadMax, `${sum} bytes: ${[...first].join(', ')}`)
  const later = [...files.keys()].filter((path) => path.startsWith('assets/') && !first.has(path))
  assert.ok(later.length >= 5, 'pages are loaded when they are opened')
  for (const path of later) assert.ok(sizeOf(path) <= fileMax, `${path}: ${sizeOf(path)} bytes`)
})

test('no file has a schema of the contract, an example or an address of elsewhere', () => {
  const text = [...files.values()].map(String).join('\n')
  assert.doesNotMatch(text, /_zod\b|ZodObject/)
  assert.doesNotMatch(text, /Acme Shop/)
  assert.doesNotMatch(text, /(?:src|href)="https?:/)
})
