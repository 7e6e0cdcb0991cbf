// docs/operating.md agrees with the code: its table of settings is the generated one, and it names all
// settings of clients and all metrics.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Settings } from '../server/config/settings.ts'
import { page, withSettings } from './settings-table.ts'

const text = readFileSync(page, 'utf8')

function namesIn(content: string, pattern: RegExp): string[] {
  return [...new Set([...content.matchAll(pattern)].map(([, name = '']) => name))].sort()
}

test('the page has the table that npm run settings generates from the schemas', () => {
  assert.equal(text, withSettings(text))
  const older = text.replace('| `LETHE_PORT` | `8080` |', '| `LETHE_PORT` | `80` |')
  assert.notEqual(older, text)
  assert.equal(withSettings(older), text)
})

test('a page without the markers is refused and not overwritten', () => {
  assert.throws(() => withSettings(text.replace('<!-- settings:end -->', '')), /has lost the markers/)
})

test('the page has every setting that the code reads, and no other', () => {
  const client = readFileSync(new URL('../server/cli/client/settings.ts', import.meta.url), 'utf8')
  const read = [...Object.keys(Settings.shape), ...namesIn(client, /\benv\.(LETHE_[A-Z_]*[A-Z])\b/g)]
  assert.deepEqual(namesIn(text, /^\| `(LETHE_[A-Z_]*[A-Z])` \|/gm), read.sort())
})

test('the page has every metric of the service, and no other', () => {
  const source = readFileSync(new URL('../server/metrics.ts', import.meta.url), 'utf8')
  const served = namesIn(source, /\bname: '(lethe_\w+)'/g)
  assert.ok(served.length > 10)
  assert.deepEqual(namesIn(text, /`(lethe_\w+)`/g), served)
})
