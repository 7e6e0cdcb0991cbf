// Erasing while both organisations of a shared placement keep sending: the eraser swaps partitions while the
// writer writes, again and again; at the end the neighbour has exactly its acknowledged rows, and the erasing
// organisation has none in the erased range.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { createApp } from '../../server/app.ts'
import { readConfig } from '../../server/config.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { systemClock } from '../../server/core/clock.ts'
import { placementCount } from '../../server/tenancy/tenancy.ts'
import { silent, temporaryFolder } from '../fixtures.ts'
import { waitFor } from '../wait-for.ts'

const secretOf = (tenantId: string) => `secret-of-${tenantId}`.padEnd(40, 'x')
const erasing = 'org-0'
/** The first organisation beyond the placements shares the first one. */
const neighbour = `org-${placementCount}`

/** Monday 2026-01-05; rows lie in two weeks from here. */
const mondayMs = 1_767_571_200_000
const hourMs = 3_600_000
const rounds = 4

const folder = temporaryFolder()
const app = await createApp({
  config: readConfig({ LETHE_DATA_DIR: folder, LETHE_PORT: '0', LETHE_COMMIT_DELAY_MS: '20' }),
  clock: systemClock,
  logger: silent,
})
let address = ''
before(async () => {
  const places = []
  for (let i = 0; i <= placementCount; i++) {
    const tenantId = `org-${i}`
    places.push(
      await app.createOrganisation(
        { tenantId, name: tenantId, actor: operatorActor('test') },
        secretOf(tenantId),
      ),
    )
  }
  assert.equal(places[0]?.placement, places[placementCount]?.placement)
  address = await app.start()
})
after(async () => {
  await app.close()
  rmSync(folder, { recursive: true, force: true })
})

function ask(tenantId: string, path: string, body?: unknown): Promise<Response> {
  const headers = { authorization: `Bearer ${secretOf(tenantId)}`, 'content-type': 'application/json' }
  return fetch(`${address}${path}`, {
    headers,
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  })
}

/** Sends batches over the two weeks until it is stopped; returns the number of acknowledged rows. */
async function keepSending(tenantId: string, stop: AbortSignal): Promise<number> {
  let acknowledged = 0
  for (let hour = 0; !stop.aborted; hour += 50) {
    const logRecords = Array.from({ length: 50 }, (_, i) => ({
      timeUnixNano: `${mondayMs + ((hour + i) % 336) * hourMs}000000`,
      body: { stringValue: 'a line' },
    }))
    const answer = await ask(tenantId, '/v1/logs', { resourceLogs: [{ scopeLogs: [{ logRecords }] }] })
    assert.ok(answer.status === 200 || answer.status === 503, `answered ${answer.status}`)
    if (answer.status === 200) acknowledged += logRecords.length
  }
  return acknowledged
}

async function eraseBefore(hour: number): Promise<void> {
  const range_end = new Date(mondayMs + hour * hourMs).toISOString()
  const created = await ask(erasing, '/usage/storage/deletions', {
    scope: 'range',
    range_end,
    confirm: erasing,
  })
  assert.equal(created.status, 202)
  const { request_id } = (await created.json()) as { request_id: string }
  await waitFor(
    async () => {
      const answer = await ask(erasing, `/usage/storage/deletions/${request_id}`)
      const { status } = (await answer.json()) as { status: string }
      assert.ok(['running', 'verifying', 'completed'].includes(status), `unexpected status ${status}`)
      return status
    },
    (status) => status === 'completed',
  )
}

async function usage(tenantId: string): Promise<{ rows: number; oldest: string | null }> {
  return (await (await ask(tenantId, '/usage/storage')).json()) as { rows: number; oldest: string | null }
}

test('a neighbour that sends while its partitions are swapped keeps exactly its acknowledged rows', async () => {
  const stop = new AbortController()
  const senders = [neighbour, neighbour, erasing].map((tenantId) => keepSending(tenantId, stop.signal))
  for (let round = 1; round <= rounds; round++) await eraseBefore(60 * round)
  stop.abort()
  const [one = 0, other = 0, own = 0] = await Promise.all(senders)
  assert.ok(one > 0 && other > 0 && own > 0)
  assert.equal((await usage(neighbour)).rows, one + other)

  await eraseBefore(60 * rounds + 1)
  const left = await usage(erasing)
  assert.ok(left.rows > 0, 'rows after the range still exist')
  assert.ok(Date.parse(left.oldest ?? '') >= mondayMs + (60 * rounds + 1) * hourMs)
})
