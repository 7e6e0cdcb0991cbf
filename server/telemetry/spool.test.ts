// What the engine is lent can be read as one file while it is lent, and is under no name then or later.

import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { temporaryFolder } from '../../tests/fixtures.ts'
import { Spool } from './spool.ts'

const folder = temporaryFolder()
after(() => rmSync(folder, { recursive: true, force: true }))

const openFiles = () => readdirSync('/proc/self/fd').length

test('the chunks are one file, more than one at a time, and no folder has it', async () => {
  const spool = new Spool(join(folder, 'a'))
  const many = Array.from({ length: 3_000 }, (_, at) => Buffer.from(`chunk ${at};`))
  const chunks = [Buffer.alloc(0), ...many, Buffer.alloc(3_000_000, 'x')]
  const before = openFiles()
  const read = await Promise.all(
    [chunks, [Buffer.from('other')]].map((own) =>
      spool.lend(own, async (path) => {
        assert.deepEqual(readdirSync(join(folder, 'a')), [])
        return readFileSync(path)
      }),
    ),
  )
  assert.deepEqual(read, [Buffer.concat(chunks), Buffer.from('other')])
  assert.equal(openFiles(), before)
})

test('where the reader fails its error comes through and the file is gone', async () => {
  const spool = new Spool(join(folder, 'b'))
  const before = openFiles()
  await assert.rejects(
    spool.lend([Buffer.from('rows')], async () => {
      throw new Error('the engine says no')
    }),
    /the engine says no/,
  )
  assert.equal(openFiles(), before)
  assert.deepEqual(readdirSync(join(folder, 'b')), [])
})

test('what an earlier process left behind is removed', () => {
  mkdirSync(join(folder, 'c'))
  writeFileSync(join(folder, 'c', 'rows-1'), 'rows')
  new Spool(join(folder, 'c'))
  assert.deepEqual(readdirSync(join(folder, 'c')), [])
})
