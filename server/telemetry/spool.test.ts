// A lent file contains all chunks while it is lent, has no name then or later, and leaves nothing in the file
// that is lent next.

import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { temporaryFolder } from '../../tests/fixtures.ts'
import { Spool } from './spool.ts'

const folder = temporaryFolder()
after(() => rmSync(folder, { recursive: true, force: true }))

/** Files of this test alone: the runner and the library open and close others meanwhile. */
const openFiles = () => readdirSync('/proc/self/fd').filter((fd) => targetOf(fd).startsWith(folder))

function targetOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return 'closed since it was listed'
  }
}

test('the chunks are one file, also where several are lent at once, and no folder has it', async () => {
  const spool = new Spool(join(folder, 'a'))
  const many = Array.from({ length: 3_000 }, (_, at) => Buffer.from(`chunk ${at};`))
  const chunks = [Buffer.alloc(0), ...many, Buffer.alloc(3_000_000, 'x')]
  const lent = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const read = await Promise.all(
    [chunks, [Buffer.from('other')]].map((own, at) =>
      spool.lend(own, async (path) => {
        lent[at]?.resolve()
        await Promise.all(lent.map(({ promise }) => promise))
        assert.equal(openFiles().length, 2)
        assert.deepEqual(readdirSync(join(folder, 'a')), [])
        return readFileSync(path)
      }),
    ),
  )
  assert.deepEqual(read, [Buffer.concat(chunks), Buffer.from('other')])
  await spool.close()
  assert.deepEqual(openFiles(), [])
})

test('files are used again and contain nothing of what was lent before', { timeout: 30_000 }, async () => {
  const spool = new Spool(join(folder, 'd'))
  const paths = new Set<string>()
  const rounds = Array.from({ length: 50 }, (_, at) => 'x'.repeat(50 - at))
  for (const rows of rounds) {
    await spool.lend([Buffer.from(rows)], async (path) => {
      paths.add(path)
      assert.equal(readFileSync(path, 'utf8'), rows)
    })
    await emptied()
  }
  assert.ok(paths.size < rounds.length, `${paths.size} files for ${rounds.length} loans`)
  await spool.close()
  assert.deepEqual(openFiles(), [])
})

/** Resolves when all files of this test are empty. */
async function emptied(): Promise<void> {
  const sizes = () => openFiles().map((fd) => statSync(`/proc/self/fd/${fd}`).size)
  while (sizes().some((size) => size > 0)) await nextTurn()
  await nextTurn()
}

test('where the reader fails its error is thrown and the file is gone', { timeout: 30_000 }, async () => {
  const spool = new Spool(join(folder, 'b'))
  await assert.rejects(
    spool.lend([Buffer.from('rows')], async () => {
      throw new Error('the engine says no')
    }),
    /the engine says no/,
  )
  await emptied()
  assert.deepEqual(readdirSync(join(folder, 'b')), [])
  await spool.close()
  assert.deepEqual(openFiles(), [])
})

test('files of an earlier process are removed', () => {
  mkdirSync(join(folder, 'c'))
  writeFileSync(join(folder, 'c', 'rows-1'), 'rows')
  new Spool(join(folder, 'c'))
  assert.deepEqual(readdirSync(join(folder, 'c')), [])
})
