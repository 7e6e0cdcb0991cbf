// The rules of exports find violations, and count every form in which a file can use the exports of another.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { findSharedNames, findUnusedExports } from './export-rules.ts'
import { parseSources } from './parse-sources.ts'
import { parseSource } from './source-file.ts'

const placesOf = (violations: readonly { readonly path: string }[]) => violations.map(({ path }) => path)

describe('the rule of unused exports', () => {
  const declared = [
    'export const value = 1, other = 2',
    'export function work() {}',
    'export class Box {}',
    'export interface Shape {}',
    'export type Alias = Shape',
    'const inner = 1',
    'export { inner as outer }',
    'export default inner',
  ].join('\n')
  const unusedBeside = (importer: string) =>
    placesOf(findUnusedExports(parseSources({ 'a/b.ts': declared, 'a/c.ts': importer })))

  test('finds every form of export that no other file imports', () => {
    assert.deepEqual(unusedBeside('const own = value'), [
      'a/b.ts:1 value',
      'a/b.ts:1 other',
      'a/b.ts:2 work',
      'a/b.ts:3 Box',
      'a/b.ts:4 Shape',
      'a/b.ts:5 Alias',
      'a/b.ts:7 outer',
      'a/b.ts:8 default',
    ])
  })

  test('counts every form of import', () => {
    const rest = (importer: string) => unusedBeside(importer).map((place) => place.split(' ')[1])
    assert.deepEqual(rest("import inner, { value, work as run, type Shape } from './b.ts'"), [
      'other',
      'Box',
      'Alias',
      'outer',
    ])
    assert.ok(!unusedBeside("export type { Alias } from './b.ts'").includes('a/b.ts:5 Alias'))
    assert.deepEqual(rest("import * as all from './b.ts'"), [])
    assert.deepEqual(rest("export * from './b.ts'"), [])
    assert.deepEqual(rest("type All = typeof import('./b.ts')"), [])
  })

  test('counts the names that are read from a dynamic import', () => {
    for (const importer of [
      "const later = async () => (await import('./b.ts')).work()",
      "const load = () => import('./b.ts')\nconst later = async () => (await load()).work()",
      "const later = async () => {\n  const { work } = await import('./b.ts')\n}",
    ]) {
      const unused = unusedBeside(importer)
      assert.ok(!unused.includes('a/b.ts:2 work'), importer)
      assert.ok(unused.includes('a/b.ts:3 Box'), importer)
    }
  })

  test('does not count an import of another file, or by a test, as a use', () => {
    const files = parseSources({
      'a.ts': 'export const value = 1',
      'b/a.ts': 'export const value = 1',
      'b/a.test.ts': "import { value } from './a.ts'",
    })
    assert.deepEqual(placesOf(findUnusedExports(files)), ['a.ts:1 value'])
  })

  test('refuses an export with names that are not in the source', () => {
    assert.throws(
      () => parseSource('a.ts', 'export const { b } = c'),
      /names of a destructuring export are unknown/,
    )
  })
})

test('the rule of names finds names that two files of the server export, and counts a value with its type as one', () => {
  const files = parseSources({
    'server/a.ts': 'export const Role = 1\nexport type Role = string',
    'server/b.ts': 'export function read() {}',
    'server/c/d.ts': 'export const read = 1',
    'server/c/d.test.ts': 'export const Role = 1',
    'bench/e.ts': 'export const Role = 1',
  })
  assert.deepEqual(placesOf(findSharedNames(files)), ['read: server/b.ts, server/c/d.ts'])
})
