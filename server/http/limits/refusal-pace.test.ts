// Refusals by a limit, over real connections: who repeats without waiting gets them later, and nobody else
// does.

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import pino from 'pino'
import { z } from 'zod'
import { waitFor } from '../../../tests/wait-for.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { AppError } from '../../core/app-error.ts'
import type { Caller } from '../../core/caller.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { byAccessToken } from '../authentication.ts'
import { testOperation } from '../operation-fixture.ts'
import { serve } from '../serve.ts'
import { createHttp } from '../server.ts'

const clock = new ManualClock(1_763_717_400_000)
const http = createHttp({
  clock,
  logger: pino({ level: 'silent' }),
  // A secret is the organisation.
  authenticate: byAccessToken(
    async (tenantId): Promise<Caller> => ({
      tenantId,
      requester: tokenNamed('token'),
      placement: 0,
      organisationName: tenantId,
      role: 'viewer',
    }),
  ),
  isReady: () => true,
})
const shared = { access: ['viewer'], result: z.object({}) } as const
serve(http, testOperation({ ...shared, path: '/free' }), { handle: async () => ({ body: {} }) })
serve(http, testOperation({ ...shared, path: '/refused' }), {
  handle: async () => {
    throw new AppError('too_many_requests', { retryAfterSeconds: 5 })
  },
})
serve(http, testOperation({ ...shared, path: '/unknown' }), {
  handle: async () => {
    throw new AppError('not_found')
  },
})

let address = ''
before(async () => {
  address = await http.listen({ host: '127.0.0.1', port: 0 })
})
after(async () => {
  http.server.closeAllConnections()
  await http.close()
})

/** A refusal that is delayed by mistake waits for a clock that nobody advances; the test then fails. */
const giveUpMs = 20_000

const ask = (path: string, tenantId: string) =>
  fetch(`${address}${path}`, {
    headers: { authorization: `Bearer ${tenantId}` },
    signal: AbortSignal.timeout(giveUpMs),
  })

async function statuses(path: string, tenantId: string, times: number): Promise<number[]> {
  const all: number[] = []
  for (let i = 0; i < times; i++) all.push((await ask(path, tenantId)).status)
  return all
}

describe('after fifty refusals at once', () => {
  test('an organisation gets further ones a second later, and nothing else is delayed', async () => {
    assert.deepEqual(new Set(await statuses('/refused', 'hasty', 50)), new Set([429]))
    let isAnswered = false
    const delayed = ask('/refused', 'hasty').finally(() => {
      isAnswered = true
    })
    await waitFor(async () => clock.waiting === 1, Boolean)
    assert.deepEqual(await statuses('/refused', 'other', 50), Array(50).fill(429))
    assert.deepEqual(await statuses('/free', 'hasty', 1), [200])
    assert.deepEqual(await statuses('/unknown', 'hasty', 60), Array(60).fill(404))
    await clock.advance(999)
    assert.deepEqual(await statuses('/free', 'other', 1), [200])
    assert.equal(isAnswered, false)
    await clock.advance(1)
    const { headers, status } = await delayed
    assert.deepEqual([status, headers.get('retry-after')], [429, '5'])
  })

  test('one that waits as it is told gets its refusals at once', async () => {
    assert.deepEqual(new Set(await statuses('/refused', 'patient', 50)), new Set([429]))
    for (let i = 0; i < 3; i++) {
      await clock.advance(1000)
      assert.deepEqual(await statuses('/refused', 'patient', 10), Array(10).fill(429))
    }
  })

  test('a delayed refusal ends when its client disconnects', async () => {
    await statuses('/refused', 'gone', 50)
    const { port } = new URL(address)
    const socket = connect(Number(port), '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write('GET /refused HTTP/1.1\r\nhost: lethe\r\nauthorization: Bearer gone\r\n\r\n')
    await waitFor(async () => clock.waiting === 1, Boolean)
    socket.destroy()
    await waitFor(async () => clock.waiting === 0, Boolean)
  })
})
