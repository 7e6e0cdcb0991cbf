// Organisations share a real engine, with reads that take a while. The tests count the order and measure no
// time.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { getPriority } from 'node:os'
import { after, before, test } from 'node:test'
import { temporaryFolder } from '../../tests/fixtures.ts'
import { AppError } from '../core/app-error.ts'
import { yieldingNice } from '../core/process/thread-priority.ts'
import { openChdb } from './chdb.ts'
import type { ReadShare, TelemetryEngine } from './engine.ts'
import { longReads as usualLongReads } from './sessions/long-reads.ts'
import { sql, uint } from './sql.ts'

let engine: TelemetryEngine
const folder = temporaryFolder()
before(async () => {
  const longReads = { ...usualLongReads, longMs: 100, ranMs: 100, waitedMs: 50 }
  engine = await openChdb({ folder, maxMemoryBytes: 2 ** 30, longReads })
})
after(async () => {
  await engine.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Reads that keep a core busy for some tens of milliseconds. */
const busy = (rows = 3_000_000) => sql`SELECT max(cityHash64(number)) AS most FROM numbers(${uint(rows)})`
const endless = sql`SELECT max(cityHash64(number)) AS most FROM numbers(1000000000000)`
const attacker: ReadShare = { tenantId: 'attacker', kind: 'asked' }
const neighbour: ReadShare = { tenantId: 'neighbour', kind: 'asked' }

/** Returns how many endless reads are running. A session lists a killed one until it begins another. */
async function underWay(): Promise<number> {
  const rows = await engine.select<{ n: string }>(
    sql`SELECT count() AS n FROM system.processes WHERE is_cancelled = 0 AND position(query, 'numbers(1000000000000)') > 0`,
  )
  return Number(rows[0]?.n) - 1
}

/** Some minutes of looks: reads that never begin must not keep a run going. */
const looksMax = 20_000

async function untilUnderWay(count: number): Promise<void> {
  for (let looks = 0; (await underWay()) < count; looks++) {
    assert.ok(looks < looksMax, `fewer than ${count} endless reads are running`)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** The kernel's number of the right to change a priority back (capabilities(7)). */
const mayRaisePriority = 23n

/** Whether the engine may change the priority of its threads; it looks for the right before it does. */
function hasPriorityRight(): boolean {
  const effective = /^CapEff:\s*([\da-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'
  return ((BigInt(`0x${effective}`) >> mayRaisePriority) & 1n) === 1n
}

/**
 * The nice values of the threads of this process that compute (proc_pid_stat(5)). A thread without work may
 * have any, because each statement sets its own.
 */
function niceValues(): Set<number> {
  const ids = readdirSync('/proc/self/task').map(Number)
  return new Set(
    ids.flatMap((id) => {
      try {
        const isRunning = readFileSync(`/proc/self/task/${id}/stat`, 'utf8').includes(') R ')
        return isRunning ? getPriority(id) : []
      } catch {
        return []
      }
    }),
  )
}

const withPriorities = {
  skip: hasPriorityRight() ? false : 'this process may not change the priority of a thread',
}

const yields = () => niceValues().has(yieldingNice())

/** Some minutes of turns, each of which looks at every thread: a fault must not keep a run going. */
const turnsMax = 100_000

async function until(isReached: () => boolean): Promise<void> {
  for (let turn = 0; !isReached(); turn++) {
    assert.ok(turn < turnsMax, `threads have the nice values ${[...niceValues()].join()}`)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Reads for the attacker until it no longer wants the result. */
const readUntil = ({ signal }: AbortController) =>
  assert.rejects(
    engine.select(endless, { maxSeconds: 600, maxMemoryBytes: 2 ** 29 }, { ...attacker, signal }),
    { name: 'AbortError' },
  )

// First, because a neighbour that has read counts as present for a while.
test(
  'an organisation with more reads waiting gives way beside one that only sends',
  withPriorities,
  async () => {
    await engine.command(sql`CREATE TABLE sent (N UInt8) ENGINE = MergeTree ORDER BY N`)
    const wanted = [1, 2, 3, 4].map(() => new AbortController())
    const reads = wanted.map(readUntil)
    await untilUnderWay(2)
    assert.equal(yields(), false, 'it is alone')
    const commit = { isYielding: false, tenantIds: new Set(['sender']) }
    await engine.insert('sent', [{ name: 'N', type: 'UInt8' }], [Buffer.from([7])], commit)
    wanted[0]?.abort()
    await until(yields)
    for (const each of wanted) each.abort()
    await Promise.all(reads)
    await until(() => !yields())
  },
)

test('the one read of a neighbour is answered after a few of the fifty that another organisation has queued', async () => {
  let answered = 0
  const fifty = Array.from({ length: 50 }, () =>
    engine.select(busy(), undefined, attacker).then(() => answered++),
  )
  await engine.select(busy(), undefined, neighbour)
  const before = answered
  await Promise.all(fifty)
  assert.equal(answered, 50)
  assert.ok(before <= 10, `${before} of 50 were answered first`)
})

test('a read of the service itself waits for no organisation', async () => {
  let answered = 0
  const fifty = Array.from({ length: 50 }, () =>
    engine.select(busy(), undefined, attacker).then(() => answered++),
  )
  await engine.select(busy())
  const before = answered
  await Promise.all(fifty)
  assert.ok(before <= 10, `${before} of 50 were answered first`)
})

test('statements that run for long leave room for both kinds of reads of a neighbour', async () => {
  const rest = new AbortController()
  let ended = 0
  const long = Array.from({ length: 4 }, (_, i) => {
    const share = { ...attacker, signal: rest.signal, ...(i === 0 && { kind: 'background' as const }) }
    const limits = { maxSeconds: 600, maxMemoryBytes: 2 ** 29 }
    return assert.rejects(engine.select(endless, limits, share), { name: 'AbortError' }).then(() => ended++)
  })
  // Three where the organisation is alone.
  await untilUnderWay(2)
  // Of organisations that had no read before: where a machine is so busy that one took long, the next one
  // must wait beside three long ones.
  await engine.select(busy(1000), undefined, { tenantId: 'asking', kind: 'asked' })
  await engine.select(busy(1000), undefined, { tenantId: 'detecting', kind: 'background' })
  assert.equal(ended, 0)
  rest.abort()
  await Promise.all(long)
})

test('organisations with endless reads that occupy every session together don’t keep a neighbour from one', async () => {
  const limits = { maxSeconds: 30, maxMemoryBytes: 2 ** 29 }
  const [rest, ended] = [new AbortController(), [] as unknown[]]
  const long = ['first', 'second', 'third', 'fourth'].map(async (tenantId) => {
    const share = { tenantId, kind: 'asked', signal: rest.signal } as const
    await engine.select(endless, limits, share).catch((error: unknown) => ended.push(error))
  })
  await untilUnderWay(4)
  // Of an organisation that had no long read before.
  await engine.select(busy(1000), undefined, { tenantId: 'newcomer', kind: 'asked' })
  assert.equal(ended.length, 1)
  const [refusal] = ended
  assert.ok(refusal instanceof AppError && refusal.code === 'query_too_expensive', String(refusal))
  assert.match(refusal.message, /took long while other organisations waited/)
  assert.equal(await underWay(), 3)
  rest.abort()
  await Promise.all(long)
})

test('an organisation with too many waiting reads is refused at once, and a neighbour is not', async () => {
  const answers = Array.from({ length: 300 }, () =>
    engine.select(busy(1000), undefined, attacker).then(
      () => 'answered',
      (error: unknown) => (error instanceof AppError ? error.code : 'other'),
    ),
  )
  await engine.select(busy(1000), undefined, neighbour)
  const counts = Map.groupBy(await Promise.all(answers), (answer) => answer)
  // Those that began at once: one where the neighbour of the test before is still present, otherwise two.
  const begun = (counts.get('answered')?.length ?? 0) - 64
  assert.ok(begun === 1 || begun === 2, `${begun} began`)
  assert.equal(counts.get('too_many_requests')?.length, 300 - 64 - begun)
})

test('an aborted read is killed where it runs and never begun where it waits', async () => {
  const gone = new AbortController()
  const share = { ...attacker, signal: gone.signal }
  const reads = Array.from({ length: 5 }, () =>
    assert.rejects(engine.select(endless, { maxSeconds: 600, maxMemoryBytes: 2 ** 29 }, share), {
      name: 'AbortError',
    }),
  )
  await untilUnderWay(1)
  gone.abort()
  await Promise.all(reads)
  assert.equal(await underWay(), 0)
  await engine.select(busy(1000), undefined, attacker)
})

test('a read that is aborted before the engine knows it is killed too', async () => {
  for (let turns = 0; turns < 30; turns++) {
    const gone = new AbortController()
    const read = readUntil(gone)
    for (let at = 0; at < turns; at++) await new Promise((resolve) => setImmediate(resolve))
    gone.abort()
    await read
  }
  assert.equal(await underWay(), 0)
})

test(
  'an organisation with more reads waiting beside others gives way to everything else that computes',
  withPriorities,
  async () => {
    const [first, second] = [new AbortController(), new AbortController()]
    await engine.select(busy(1000), undefined, neighbour)
    const one = readUntil(first)
    await untilUnderWay(1)
    assert.equal(yields(), false, 'one read alone keeps its priority')
    first.abort()
    await one
    // The first begins before the others wait.
    const reads = [1, 2, 3].map(() => readUntil(second))
    await engine.select(busy(1000), undefined, neighbour)
    await until(yields)
    second.abort()
    await Promise.all(reads)
    await until(() => !yields())
  },
)
