// The journal returns exactly what was appended, survives a cut in the middle of a line, and refuses any
// other change by which an erasure could be forgotten or altered.

import assert from 'node:assert/strict'
import { appendFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { after, mock, test } from 'node:test'
import { temporaryFolder } from '../../tests/fixtures.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { DiskCalls, DiskNotAnswering } from '../disk/disk-calls.ts'
import { ErasureJournal, type JournalEntry, JournalError } from './journal.ts'

const folders: string[] = []
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

function newFolder(): string {
  const folder = temporaryFolder()
  folders.push(folder)
  return join(folder, 'backups')
}

function journalIn(folder: string, seal = 'secret of this folder', calls = new DiskCalls(folder)) {
  return new ErasureJournal(folder, seal, calls)
}

const newJournal = () => journalIn(newFolder())

function entryOf(requestId: string, changes: Partial<JournalEntry> = {}): JournalEntry {
  return {
    request_id: requestId,
    tenant_id: 'acme',
    placement: 3,
    scope: 'range',
    signals: ['logs', 'traces'],
    range_start_ns: null,
    range_end_ns: '1767571200000000001',
    requested_by: 'token:tok_1',
    created_at_ms: 1_767_571_200_000,
    refuse_late: false,
    reason: 'personal_data',
    ...changes,
  }
}

const three = [
  entryOf('del_1'),
  entryOf('del_2', { refuse_late: true }),
  entryOf('del_3', { tenant_id: 'globex' }),
]

async function filled(): Promise<ErasureJournal> {
  const journal = newJournal()
  for (const entry of three) await journal.append(entry)
  return journal
}

const linesOf = ({ path }: ErasureJournal) => readFileSync(path, 'utf8').split('\n').slice(0, -1)
const writeLines = ({ path }: ErasureJournal, lines: readonly string[]) =>
  writeFileSync(path, lines.map((line) => `${line}\n`).join(''))

async function assertRefused(journal: ErasureJournal, line: number): Promise<void> {
  const names = (error: unknown) => {
    assert.ok(error instanceof JournalError)
    assert.match(error.message, new RegExp(`^Line ${line} `))
    assert.ok(!error.message.includes('secret of this folder'))
    return true
  }
  await assert.rejects(journal.read(), names)
  const before = readFileSync(journal.path)
  await assert.rejects(journal.append(entryOf('del_new')), names)
  assert.deepEqual(readFileSync(journal.path), before, 'nothing is written to a journal that is not trusted')
}

test('a line with endless nesting is refused like any other foreign line', async () => {
  const journal = await filled()
  const deep = `{"entry":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
  writeLines(journal, [...linesOf(journal), deep])
  await assertRefused(journal, 4)
})

test('without a file there is nothing to erase again', async () => {
  assert.deepEqual(await newJournal().read(), [])
})

test('appended entries are read in order, by another process too', async () => {
  const journal = await filled()
  assert.deepEqual(await journal.read(), three)
  assert.deepEqual(await journalIn(join(journal.path, '..')).read(), three)
})

test('the same erasure is written once, whatever the order of its fields', async () => {
  const journal = await filled()
  const before = readFileSync(journal.path)
  await journal.append(
    Object.fromEntries(Object.entries(entryOf('del_2', { refuse_late: true })).reverse()) as JournalEntry,
  )
  assert.deepEqual(readFileSync(journal.path), before)
})

test('a line of an earlier version, without the founding hash, stays unchanged and is not written again', async () => {
  const journal = await filled()
  const founded = entryOf('del_1', { founding_hash: 'a'.repeat(64) })
  await journal.append(founded)
  assert.deepEqual(await journal.read(), three)
  const younger = newJournal()
  await younger.append(founded)
  await younger.append(entryOf('del_1'))
  assert.deepEqual(await younger.read(), [founded])
  await assert.rejects(younger.append(entryOf('del_1', { founding_hash: 'b'.repeat(64) })), JournalError)
})

test('who approved it is in the line and sealed, and a line without it is of the same erasure', async () => {
  const approved = entryOf('del_1', { approved_by: 'token:ben (tok_2)', approved_at_ms: 5 })
  const journal = newJournal()
  await journal.append(approved)
  await journal.append(entryOf('del_1'))
  assert.deepEqual(await journal.read(), [approved])
  await assert.rejects(journal.append({ ...approved, approved_by: 'token:carl (tok_3)' }), JournalError)
  writeLines(
    journal,
    linesOf(journal).map((line) => line.replace('tok_2', 'tok_3')),
  )
  await assertRefused(journal, 1)
  const older = await filled()
  await older.append(approved)
  assert.deepEqual(await older.read(), three)
})

test('the same request with another selection is refused', async () => {
  const journal = await filled()
  await assert.rejects(journal.append(entryOf('del_2', { range_end_ns: '5' })), JournalError)
  assert.deepEqual(await journal.read(), three)
})

test('only the service’s own user may read it', async () => {
  const { path } = await filled()
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.equal(statSync(join(path, '..')).mode & 0o777, 0o700)
})

test('a line that was cut at any byte is ignored, and removed by the next append', async () => {
  const journal = await filled()
  const whole = readFileSync(journal.path)
  const lastStart = whole.lastIndexOf(0x0a, whole.length - 2) + 1
  for (let cut = lastStart; cut < whole.length; cut += 13) {
    writeFileSync(journal.path, whole.subarray(0, cut))
    assert.deepEqual(await journal.read(), three.slice(0, 2), `cut at ${cut}`)
    await journal.append(entryOf('del_4'))
    assert.deepEqual(
      await journal.read(),
      [...three.slice(0, 2), entryOf('del_4')],
      `appended after a cut at ${cut}`,
    )
  }
})

test('nothing is left of a cut line that is longer than the next one', async () => {
  const journal = await filled()
  appendFileSync(journal.path, 'x'.repeat(5000))
  await journal.append(entryOf('del_4'))
  assert.deepEqual(await journal.read(), [...three, entryOf('del_4')])
  assert.ok(!readFileSync(journal.path, 'utf8').includes('xx'))
})

test('a changed entry is refused with its line', async () => {
  const journal = await filled()
  const lines = linesOf(journal)
  for (const [i, line] of lines.entries()) {
    const changed = line.replace('1767571200000000001', '1767571200000000000')
    assert.notEqual(changed, line)
    writeLines(journal, lines.with(i, changed))
    await assertRefused(journal, i + 1)
  }
})

test('a line that was removed, moved, repeated or inserted is refused', async () => {
  const journal = await filled()
  const [first = '', second = '', third = ''] = linesOf(journal)
  const other = journalIn(newJournal().path, 'another secret')
  await other.append(entryOf('del_0'))
  const [foreign = ''] = linesOf(other)
  for (const [lines, bad] of [
    [[second, third], 1],
    [[first, third], 2],
    [[second, first, third], 1],
    [[first, first, second, third], 2],
    [[first, foreign, second, third], 2],
    [[foreign], 1],
    [[first, '', second, third], 2],
    [[first, 'null', second, third], 2],
    [[first, '{"entry":', second, third], 2],
  ] as const) {
    writeLines(journal, lines)
    await assertRefused(journal, bad)
  }
})

test('bytes that are not an entry are refused after their line is complete', async () => {
  const journal = await filled()
  appendFileSync(journal.path, '\0\0\0')
  assert.deepEqual(await journal.read(), three)
  appendFileSync(journal.path, '\n')
  await assertRefused(journal, 4)
})

test('the journal of another data folder is refused', async () => {
  const journal = await filled()
  await assertRefused(journalIn(join(journal.path, '..'), 'another secret'), 1)
})

test('an entry that could not be read back is not written', async () => {
  const journal = await filled()
  for (const changes of [
    { range_end_ns: '1.5' },
    { signals: [] },
    { placement: -1 },
    { note: 'a name' },
  ] as Partial<JournalEntry>[]) {
    await assert.rejects(journal.append(entryOf('del_9', changes)))
  }
  assert.deepEqual(await journal.read(), three)
})

test('a folder in place of the journal is refused', async () => {
  const journal = newJournal()
  mkdirSync(journal.path, { recursive: true })
  await assert.rejects(journal.read(), JournalError)
})

test('a line that another process writes between two of ours is continued, and a change of it is refused', async () => {
  const journal = await filled()
  const other = journalIn(dirname(journal.path))
  await other.append(entryOf('del_4'))
  await journal.append(entryOf('del_5'))
  await other.append(entryOf('del_6'))
  await journal.append(entryOf('del_4'))
  assert.deepEqual(
    (await journal.read()).map(({ request_id }) => request_id),
    ['del_1', 'del_2', 'del_3', 'del_4', 'del_5', 'del_6'],
  )
  await assert.rejects(journal.append(entryOf('del_6', { tenant_id: 'globex' })), JournalError)
  const lines = linesOf(journal)
  writeLines(journal, lines.toSpliced(1, 1, lines[1]?.replace('acme', 'acne') ?? ''))
  await assert.rejects(journal.append(entryOf('del_7')), /^JournalError: Line 2 /)
  writeLines(journal, lines)
  await journal.append(entryOf('del_7'))
  rmSync(journal.path)
  await journal.append(entryOf('del_8'))
  assert.deepEqual(
    (await journal.read()).map(({ request_id }) => request_id),
    ['del_8'],
  )
})

/** Returns how many bytes the process reads from files during the work. */
async function bytesRead(work: () => Promise<void>): Promise<number> {
  const read = () => Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])
  const before = read()
  await work()
  return read() - before
}

test('a repeated attempt does not read the journal again, and reads all of it once somebody has written to it', async () => {
  const journal = await filled()
  const long = entryOf('del_long', { reason: 'x'.repeat(100_000) })
  await journal.append(long)
  const again = (own: ErasureJournal) => bytesRead(() => own.append(long))
  assert.ok((await again(journal)) < 10_000)
  const next = journalIn(dirname(journal.path))
  assert.ok((await again(next)) > 100_000, 'the first one of a process verifies it')
  assert.ok((await again(next)) < 10_000)
  await journal.append(entryOf('del_4'))
  assert.ok((await again(next)) > 100_000)
  writeLines(journal, linesOf(journal).with(1, linesOf(journal)[0] ?? ''))
  for (let times = 0; times < 2; times++) await assert.rejects(next.append(long), /^JournalError: Line 2 /)
})

test('an erasure that repeats a line of an earlier version is compared with it once', async () => {
  const journal = await filled()
  await journal.append(entryOf('del_long', { reason: 'x'.repeat(100_000) }))
  const founded = entryOf('del_1', { founding_hash: 'a'.repeat(64) })
  assert.ok((await bytesRead(() => journal.append(founded))) > 100_000)
  assert.ok((await bytesRead(() => journal.append(founded))) < 10_000)
  await assert.rejects(journal.append({ ...founded, range_end_ns: '5' }), JournalError)
})

test('entries that are appended at the same time are all written, also by two journals of one file', async () => {
  const folder = newFolder()
  const calls = new DiskCalls(folder)
  const [journal, other] = [journalIn(folder, undefined, calls), journalIn(folder, undefined, calls)]
  const entries = Array.from({ length: 8 }, (_, i) => entryOf(`del_${i}`))
  await Promise.all(
    entries.map(async (entry, i) => {
      const [one, two] = i % 2 === 0 ? [journal, other] : [other, journal]
      await Promise.all([one.ensure(), one.append(entry), two.ensure()])
    }),
  )
  assert.deepEqual(new Set(await journal.read()), new Set(entries))
})

test('nothing is appended while the disk does not answer, and everything is when it does again', async () => {
  const [clock, folder] = [new ManualClock(0), newFolder()]
  const calls = new DiskCalls(folder, clock)
  const journal = journalIn(folder, undefined, calls)
  await journal.append(entryOf('del_1'))
  const stuck = Promise.withResolvers<void>()
  const late = assert.rejects(
    calls.run(() => stuck.promise),
    DiskNotAnswering,
  )
  const waiting = assert.rejects(journal.append(entryOf('del_2')), DiskNotAnswering)
  while (clock.waiting === 0) await new Promise(setImmediate)
  await clock.advance(30_000)
  await Promise.all([late, waiting])
  await assert.rejects(journal.append(entryOf('del_3')), DiskNotAnswering)
  assert.equal(linesOf(journal).length, 1)
  stuck.resolve()
  await new Promise(setImmediate)
  await journal.append(entryOf('del_2'))
  assert.deepEqual(
    (await journal.read()).map(({ request_id }) => request_id),
    ['del_1', 'del_2'],
  )
})

test('a line whose sync failed is written and synced again before it counts, also by the next process', async () => {
  const journal = newJournal()
  const handle = await open(dirname(dirname(journal.path)), 'r')
  const prototype: FileHandle = Object.getPrototypeOf(handle)
  await handle.close()
  const sync = mock.method(prototype, 'sync')
  const write = mock.method(prototype, 'write')
  const calls = () => [write.mock.callCount(), sync.mock.callCount()]
  const fails = async () => {
    throw Object.assign(new Error('EIO'), { code: 'EIO' })
  }
  try {
    sync.mock.mockImplementationOnce(fails)
    await assert.rejects(journal.append(entryOf('del_1')), { code: 'EIO' })
    assert.equal(linesOf(journal).length, 1, 'the system still shows it')
    sync.mock.mockImplementationOnce(fails, 2)
    await assert.rejects(journal.append(entryOf('del_1')), { code: 'EIO' })
    await journal.append(entryOf('del_1'))
    assert.deepEqual(calls(), [3, 5])
    await journal.append(entryOf('del_1'))
    assert.deepEqual(calls(), [3, 5], 'nothing once it is on the disk')
    const next = journalIn(dirname(journal.path))
    await next.append(entryOf('del_1'))
    assert.deepEqual(calls(), [4, 7], 'the file and its name in the folder')
    assert.deepEqual(await next.read(), [entryOf('del_1')])
  } finally {
    mock.restoreAll()
  }
})
