// kill -9 during ingest, and at steps of an erasure. Then the service is started again on the same
// folder: no acknowledged row is lost, no erased row is back, the neighbour's identical rows are complete;
// SIGTERM loses nothing either.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolders } from '../fixtures.ts'
import { waitFor } from '../wait-for.ts'
import type { ChildOptions, StandStill } from './crash-child.ts'

const organisation = (tenantId: string) => ({ tenantId, secret: `secret-of-${tenantId}`.padEnd(40, 'x') })
const acme = organisation('acme')
const globex = organisation('globex')
const childProgram = fileURLToPath(new URL('crash-child.ts', import.meta.url))

/**
 * Monday 2026-01-05T00:00:00Z; rows of two weeks, so that an erasure has partitions to drop and to rewrite.
 */
const mondayMs = 1_767_571_200_000
const hourMs = 3_600_000
const rowCount = 2 * 7 * 24

/**
 * Where files of the engine have changed and the short run of the simulation (kill.test.ts) does not kill.
 */
const points = [
  { point: 'survivors copied', occurrence: 1 },
  { point: 'partition replaced', occurrence: 1 },
]
/** Each point has organisations of its own. */
const owners = points.map((_, i) => organisation(`acme-${i}`))
const neighbours = points.map((_, i) => organisation(`globex-${i}`))

const children = new Set<ChildProcess>()
after(() => {
  for (const child of children) child.kill('SIGKILL')
})

interface Service {
  readonly address: string
  /** Names the failpoint to pause at. */
  standAt(standStill: StandStill): Promise<void>
  /** Resolves when the child is paused at its failpoint. */
  readonly standing: Promise<string>
  kill(): Promise<void>
  terminate(): Promise<number | null>
}

async function start(options: ChildOptions): Promise<Service> {
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', childProgram, JSON.stringify(options)],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  )
  children.add(child)
  const ended = once(child, 'exit').then(([code]) => {
    children.delete(child)
    return code as number | null
  })
  const standing = Promise.withResolvers<string>()
  const listening = Promise.withResolvers<string>()
  const confirmed = Promise.withResolvers<void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    const fact: { address?: string; willStandAt?: string; standsAt?: string } = JSON.parse(line)
    if (fact.address !== undefined) listening.resolve(fact.address)
    if (fact.willStandAt !== undefined) confirmed.resolve()
    if (fact.standsAt !== undefined) standing.resolve(fact.standsAt)
  })
  void ended.then((code) => listening.reject(new Error(`the child ended with ${code} before it listened`)))
  return {
    address: await listening.promise,
    async standAt(standStill) {
      child.stdin.write(`${JSON.stringify(standStill)}\n`)
      await confirmed.promise
    },
    standing: standing.promise,
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
    terminate() {
      child.kill('SIGTERM')
      return ended
    },
  }
}

const newFolder = temporaryFolders()

async function ask(
  service: Service,
  secret: string,
  path: string,
  init: RequestInit = {},
): Promise<Response> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  return fetch(`${service.address}${path}`, { ...init, headers })
}

function exportOf(bodies: readonly string[], timeMs: (i: number) => number): string {
  const logRecords = bodies.map((stringValue, i) => ({
    timeUnixNano: `${timeMs(i)}000000`,
    severityNumber: 9,
    body: { stringValue },
  }))
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }] }
  return JSON.stringify({ resourceLogs: [{ resource, scopeLogs: [{ logRecords }] }] })
}

async function rowsOf(service: Service, secret: string): Promise<number> {
  const usage = (await (await ask(service, secret, '/usage/storage')).json()) as { rows: number }
  return usage.rows
}

/** Every log body of the organisation, over all pages. */
async function bodiesOf(service: Service, secret: string): Promise<string[]> {
  const bodies: string[] = []
  let cursor: string | null = null
  do {
    const query = new URLSearchParams({
      start: '2026-01-01T00:00:00Z',
      end: '2026-02-01T00:00:00Z',
      limit: '500',
    })
    if (cursor !== null) query.set('cursor', cursor)
    const answer = await ask(service, secret, `/telemetry/logs?${query}`)
    assert.equal(answer.status, 200)
    const page = (await answer.json()) as { items: { body: string }[]; next_cursor: string | null }
    bodies.push(...page.items.map(({ body }) => body))
    cursor = page.next_cursor
  } while (cursor !== null)
  return bodies
}

async function statusOf(
  service: Service,
  secret: string,
  requestId: string,
): Promise<{ status: string; detail: Record<string, unknown> }> {
  const answer = await ask(service, secret, `/usage/storage/deletions/${requestId}`)
  assert.equal(answer.status, 200)
  return (await answer.json()) as { status: string; detail: Record<string, unknown> }
}

/** Waits until the request is completed; no other status but those before it may occur. */
async function completed(
  service: Service,
  secret: string,
  requestId: string,
): Promise<Record<string, unknown>> {
  const { detail } = await waitFor(
    async () => {
      const found = await statusOf(service, secret, requestId)
      const expected = ['running', 'verifying', 'incomplete', 'completed']
      assert.ok(expected.includes(found.status), `unexpected status ${found.status}`)
      return found
    },
    ({ status }) => status === 'completed',
  )
  return detail
}

/** All tests have one data folder: what one of them has started again is ended by the next. */
describe('the service, ended and started again,', () => {
  let dataDir = ''
  /** Of all tests in this folder: the service that is started after the next end must still have it. */
  let acknowledged: string[] = []
  /** The service that the test before has started again; null where that test has failed. */
  let running: Service | null = null
  const takeRunning = async () => {
    if (running === null) {
      dataDir = newFolder()
      acknowledged = []
    }
    const organisations = [acme, globex, ...owners, ...neighbours]
    const service = running ?? (await start({ dataDir, organisations }))
    running = null
    return service
  }
  after(async () => {
    if (running !== null) assert.equal(await running.terminate(), 0)
  })

  /** Starts the service again, and checks that it has everything that was acknowledged. */
  const assertKept = async () => {
    const again = await start({ dataDir, organisations: [] })
    const kept = new Set(await bodiesOf(again, acme.secret))
    assert.deepEqual(
      acknowledged.filter((body) => !kept.has(body)),
      [],
    )
    assert.equal(await rowsOf(again, globex.secret), 0)
    running = again
  }

  for (const killAfter of [1, 23]) {
    test(`kill -9 loses no acknowledged row when it strikes after ${killAfter} acknowledgements`, async () => {
      const service = await takeRunning()
      const earlier = acknowledged.length
      const reached = Promise.withResolvers<void>()
      let isKilled = false
      const sender = async (name: string) => {
        for (let batch = 0; !isKilled; batch++) {
          const bodies = Array.from({ length: 50 }, (_, i) => `${killAfter}-${name}-${batch}-${i}`)
          const body = exportOf(bodies, (i) => mondayMs + i)
          const answer = await ask(service, acme.secret, '/v1/logs', { method: 'POST', body }).catch(
            () => null,
          )
          if (answer?.status !== 200) return
          acknowledged.push(...bodies)
          if (acknowledged.length - earlier >= killAfter * 50) reached.resolve()
        }
      }
      const senders = ['a', 'b', 'c'].map(sender)
      await reached.promise
      isKilled = true
      await service.kill()
      await Promise.all(senders)
      await assertKept()
    })
  }

  test('SIGTERM completes accepted requests, loses nothing, and ends with 0', async () => {
    const service = await takeRunning()
    const sends = Array.from({ length: 20 }, async (_, batch) => {
      const body = exportOf([`term-${batch}`], () => mondayMs)
      const answer = await ask(service, acme.secret, '/v1/logs', { method: 'POST', body }).catch(() => null)
      return answer?.status === 200 ? `term-${batch}` : null
    })
    await Promise.race(sends)
    assert.equal(await service.terminate(), 0)
    const completed = (await Promise.all(sends)).filter((body) => body !== null)
    assert.ok(completed.length > 0)
    acknowledged.push(...completed)
    await assertKept()
  })

  /** A range that ends inside the second week: the first week is dropped, the second rewritten. */
  const endHour = 10 * 24 + 5
  const range = {
    scope: 'range',
    range_end: new Date(mondayMs + endHour * hourMs).toISOString(),
  }
  for (const [i, standStill] of points.entries()) {
    const [own, other] = [owners[i] ?? acme, neighbours[i] ?? globex]
    test(`kill -9 during an erasure at "${standStill.point}" brings no erased row back and loses no other`, async () => {
      const service = await takeRunning()
      await service.standAt(standStill)
      const bodies = Array.from({ length: rowCount }, (_, hour) => `row-${hour}`)
      const body = exportOf(bodies, (hour) => mondayMs + hour * hourMs)
      for (const { secret } of [own, other]) {
        const sent = await ask(service, secret, '/v1/logs', { method: 'POST', body })
        assert.equal(sent.status, 200)
        assert.equal(await rowsOf(service, secret), rowCount)
      }
      const answer = await ask(service, own.secret, '/usage/storage/deletions', {
        method: 'POST',
        body: JSON.stringify({ ...range, confirm: own.tenantId }),
      })
      assert.equal(answer.status, 202)
      const { request_id } = (await answer.json()) as { request_id: string }
      assert.equal(await rowsOf(service, own.secret), rowCount - endHour, 'hidden when the 202 is sent')
      assert.equal(await service.standing, standStill.point)
      await service.kill()

      const again = await start({ dataDir, organisations: [] })
      assert.equal(await rowsOf(again, own.secret), rowCount - endHour, 'hidden after the restart')
      const detail = await completed(again, own.secret, request_id)
      assert.equal(detail.rows_erased, endHour)
      const kept = await bodiesOf(again, own.secret)
      assert.deepEqual(kept.toSorted(), bodies.slice(endHour).toSorted())
      assert.deepEqual((await bodiesOf(again, other.secret)).toSorted(), bodies.toSorted())
      running = again
    })
  }
})
