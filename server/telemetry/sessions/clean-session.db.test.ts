// Statements that end in the middle of their result, in a real engine: nothing of it is in the result of
// another statement, and a result that was cut off is never returned.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { temporaryFolder } from '../../../tests/fixtures.ts'
import { AppError } from '../../core/app-error.ts'
import { openChdb } from '../chdb.ts'
import { EngineError, type ReadShare, type StatementLimits, type TelemetryEngine } from '../engine.ts'
import { raw, sql, uint } from '../sql.ts'
import { ownReaders, readers } from './numbers.ts'

let engine: TelemetryEngine
const folder = temporaryFolder()
before(async () => {
  engine = await openChdb({ folder, maxMemoryBytes: 2 ** 30 })
})
after(async () => {
  await engine.close()
  rmSync(folder, { recursive: true, force: true })
})

const usual: StatementLimits = { maxSeconds: 30, maxMemoryBytes: 2 ** 30 }
const neighbour: ReadShare = { tenantId: 'neighbour', kind: 'asked' }

/** Rows of one organisation, in blocks of a few, so that a part of them is written before the end. */
const slow = raw(
  'SELECT number, sleepEachRow(0.01) AS s FROM (SELECT number FROM numbers(100000) LIMIT 100000)',
)
const inBlocks = { ...usual, maxBlockRows: 10 }

const endings: readonly (readonly [string, (share?: ReadShare) => Promise<unknown>])[] = [
  [
    'an error',
    (share) =>
      engine.select(raw('SELECT number, throwIf(number = 5000) AS t FROM numbers(100000)'), inBlocks, share),
  ],
  ['its limit of time', (share) => engine.select(slow, { ...inBlocks, maxSeconds: 0.5 }, share)],
  ['its limit of time, as blocks,', (share) => engine.bytes(slow, { ...inBlocks, maxSeconds: 0.5 }, share)],
  [
    'its limit of memory',
    (share) =>
      engine.select(
        raw("SELECT repeat(repeat('x', 100), toUInt64(exp2(number))) AS long FROM numbers(18)"),
        { ...usual, maxBlockRows: 1, maxMemoryBytes: 16 * 2 ** 20 },
        share,
      ),
  ],
  [
    'its limit of bytes',
    (share) =>
      engine.select(
        raw('SELECT number FROM numbers(100000)'),
        { ...inBlocks, maxResultBytes: 50_000 },
        share,
      ),
  ],
]

for (const [what, fail] of endings) {
  test(`what a statement has written before ${what} ends it is in no result of another`, async () => {
    for (const share of [undefined, { tenantId: 'acme', kind: 'asked' } as const]) {
      const failed = await Promise.allSettled(
        Array.from({ length: share === undefined ? ownReaders : readers - 1 }, () => fail(share)),
      )
      for (const { status, ...rest } of failed) {
        assert.equal(status, 'rejected')
        assert.ok('reason' in rest && (rest.reason instanceof AppError || rest.reason instanceof EngineError))
      }
      // More than there are sessions, so that each of them reads.
      const read = await Promise.all(
        Array.from({ length: 3 * (readers + ownReaders) }, (_, i) =>
          engine.select(sql`SELECT ${uint(i)} AS i`, usual, i % 2 === 0 ? neighbour : undefined),
        ),
      )
      assert.deepEqual(
        read,
        read.map((_, i) => [{ i }]),
      )
    }
  })
}

test('what a statement has written before its reader goes away is in no result of another', async () => {
  const gone = new AbortController()
  const reading = engine.select(slow, inBlocks, { tenantId: 'acme', kind: 'asked', signal: gone.signal })
  const isRunning = async () => {
    const [found] = await engine.select<{ n: string }>(
      sql`SELECT count() AS n FROM system.processes WHERE position(query, 'sleepEachRow(0.0' || '1)') > 0 AND elapsed > 0.3`,
    )
    return Number(found?.n) > 0
  }
  while (!(await isRunning()));
  gone.abort()
  await assert.rejects(reading)
  for (let i = 0; i < 3 * readers; i++)
    assert.deepEqual(await engine.select(sql`SELECT ${uint(i)} AS i`, usual, neighbour), [{ i }])
})

test('near its limit of time a statement returns its whole result or an error, never a part', async () => {
  const counts = { complete: 0, refused: 0 }
  for (let i = 0; i < 100; i++) {
    const limits = { ...usual, maxSeconds: 0.002 + (i % 40) * 0.001 }
    const statement = raw(
      'SELECT number FROM (SELECT number FROM numbers(200000) WHERE number % 2 = 0 SETTINGS max_block_size = 10000)',
    )
    const rows = await engine.select(statement, limits).catch((error: unknown) => {
      assert.ok(error instanceof AppError && error.code === 'query_too_expensive', String(error))
      return null
    })
    if (rows !== null) assert.equal(rows.length, 100_000)
    counts[rows === null ? 'refused' : 'complete']++
  }
  assert.ok(counts.complete > 0 && counts.refused > 0, JSON.stringify(counts))
})
