// Strange but valid ways to erase, and events during an erasure, over HTTP: ranges that overlap, are empty or
// in the future, an organisation without telemetry, two people at once, a role that is lost meanwhile, and a
// locked control plane. Each ends in a documented state with nothing half done.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, afterEach, before, test } from 'node:test'
import { DeletionRequest, LedgerEntry } from '../../contract/deletion/requests.ts'
import { CreatedAccessToken } from '../../contract/organisation/tenancy.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { formatInstant } from '../../contract/values/instant.ts'
import { openSecondHandle, whileLocked } from '../control-planes.ts'
import { temporaryFolder } from '../fixtures.ts'
import { Barrier, deletionsUrl, instant, minute, minutesOfEverySignal, requestIn } from './erasing.ts'
import {
  assertRefused,
  eraseCompletely,
  type Sent,
  type Service,
  startService,
  tenants,
  waitUntilCompleted,
} from './service.ts'
import { readSample, sampleExport, sendSample } from './telemetry.ts'

const minutesSent = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]

const dataDir = temporaryFolder()
let service: Service
const barrier = new Barrier()

before(async () => {
  service = await startService({
    settings: { LETHE_DATA_DIR: dataDir },
    failpoint: barrier.failpoint,
  })
  for (const tenant of tenants) await sendSample(service, `${tenant}/ingest`, minutesSent.map(minute))
})
after(async () => {
  await service.stop()
  rmSync(dataDir, { recursive: true, force: true })
})
afterEach(async () => {
  barrier.open()
  assert.deepEqual(await minutesOfEverySignal(service, 'globex'), minutesSent, 'the neighbour lost something')
})

function range(from: number | null, to: number): Record<string, unknown> {
  const start = from === null ? {} : { range_start: instant(from) }
  return { scope: 'range', confirm: 'acme', ...start, range_end: instant(to) }
}

const erase = (json: object, sent: Sent = {}) => service.send('POST', deletionsUrl, { ...sent, json })

const completed = (id: string) => waitUntilCompleted(service, id, 'acme/owner')

test('overlapping ranges are hidden together, each row is erased and counted once, and both complete', async () => {
  barrier.close()
  const first = requestIn(await erase(range(0, 2)), 202)
  const second = requestIn(await erase(range(1, 3)), 202)
  const inner = requestIn(await erase(range(1, 2)), 202)
  assert.deepEqual(await minutesOfEverySignal(service, 'acme'), [3, 4, 5, 6, 7, 8, 9])
  barrier.open()
  const done = await Promise.all([first, second, inner].map(({ request_id }) => completed(request_id)))
  const claimed = done.map(({ detail }) => Number(detail.rows_erased))
  assert.equal(
    claimed.reduce((sum, rows) => sum + rows, 0),
    9,
    `three minutes of three rows, claimed as ${claimed}`,
  )
  assert.deepEqual(await minutesOfEverySignal(service, 'acme'), [3, 4, 5, 6, 7, 8, 9])
})

test('adjacent ranges share no row: the end of one is the start of the next', async () => {
  const { detail } = await eraseCompletely(service, range(3, 4))
  assert.equal(detail.rows_erased, 3)
  assert.deepEqual(await minutesOfEverySignal(service, 'acme'), [4, 5, 6, 7, 8, 9])
})

test('an empty range completes with zero rows, also twice, and erases nothing', async () => {
  const year2000 = { range_start: '2000-01-01T00:00:00Z', range_end: '2000-01-01T00:00:00.000000001Z' }
  for (const bounds of [range(20, 21), range(3, 4), { ...range(0, 1), ...year2000 }, range(3, 4)]) {
    const { detail, removed_at, verified_at } = await eraseCompletely(service, bounds)
    assert.deepEqual([detail.rows_erased, detail.steps_total], [0, 0])
    assert.ok(removed_at !== null && verified_at !== null)
  }
  assert.deepEqual(await minutesOfEverySignal(service, 'acme'), [4, 5, 6, 7, 8, 9])
})

test('a range in the future refuses rows for it only while its erasure is in progress', async () => {
  const future = { ...range(0, 1), range_start: '2140-01-01T00:00:00Z', range_end: '2149-01-01T00:00:00Z' }
  const timeNs = 5_400_000_000_000_000_000n
  assert.equal(formatInstant(timeNs).slice(0, 4), '2141')
  const send = () =>
    service.send('POST', '/v1/logs', { as: 'acme/ingest', json: sampleExport('logs', [timeNs]) })
  assert.equal((await send()).status, 200)
  barrier.close()
  const { request_id } = requestIn(await erase({ ...future, signals: ['logs'] }), 202)
  const refused = await send()
  assert.equal(refused.status, 503)
  assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/)
  assert.equal(
    (await service.send('POST', '/v1/traces', { as: 'acme/ingest', json: sampleExport('traces', [timeNs]) }))
      .status,
    200,
  )
  barrier.open()
  assert.equal((await completed(request_id)).detail.rows_erased, 1)
  assert.deepEqual(
    [(await send()).status, (await readSample(service, 'acme/viewer')).storedRows],
    [200, 6 * 3 + 2],
  )
  await eraseCompletely(service, future)
  assert.equal((await readSample(service, 'acme/viewer')).storedRows, 6 * 3)
})

test('two people who request the same range at once get one request, and two requests for different ranges', async () => {
  barrier.close()
  const same = await Promise.all(
    (['acme/owner', 'acme/admin', 'acme/owner', 'acme/admin'] as const).map((as) =>
      erase(range(4, 5), { as }),
    ),
  )
  assert.deepEqual(same.map(({ status }) => status).sort(), [200, 200, 200, 202])
  const ids = new Set(same.map(({ text }) => DeletionRequest.parse(JSON.parse(text)).request_id))
  assert.equal(ids.size, 1)
  const different = await Promise.all([erase(range(5, 6)), erase(range(5, 7), { as: 'acme/admin' })])
  const both = different.map((answer) => requestIn(answer, 202).request_id)
  barrier.open()
  for (const id of [...ids, ...both]) await completed(id)
  assert.deepEqual(await minutesOfEverySignal(service, 'acme'), [7, 8, 9])
})

test('when two people cancel at once, one cancellation is recorded', async () => {
  const { request_id } = requestIn(await erase({ ...range(7, 8), delay_minutes: 5 }), 202)
  const answers = await Promise.all(
    (['acme/owner', 'acme/admin'] as const).map((as) =>
      service.send('POST', `${deletionsUrl}/${request_id}/cancel`, { as }),
    ),
  )
  const won = answers.filter(({ status }) => status === 200)
  assert.ok(won.length >= 1)
  for (const lost of answers.filter(({ status }) => status !== 200))
    assertRefused(lost, 409, 'deletion_state')
  const ledger = await service.read('/ledger?limit=500', pageOf(LedgerEntry))
  const moves = ledger.items.filter((entry) => entry.request_id === request_id)
  assert.deepEqual(
    moves.map(({ to_status }) => to_status),
    ['cancelled', 'scheduled'],
  )
  assert.deepEqual(await minutesOfEverySignal(service, 'acme'), [7, 8, 9])
})

test('an erasure continues when its requester loses the role, and still names the requester', async () => {
  const json = { name: 'leaver', role: 'admin' }
  const made = CreatedAccessToken.parse(JSON.parse((await service.send('POST', '/tokens', { json })).text))
  const leaver = { headers: { authorization: `Bearer ${made.token}` } }
  barrier.close()
  const { request_id, requested_by } = requestIn(await erase(range(7, 8), leaver), 202)
  assert.equal((await service.send('DELETE', `/tokens/${made.id}`)).status, 200)
  assert.equal((await service.send('GET', `${deletionsUrl}/${request_id}`, leaver)).status, 401)
  assert.equal((await service.send('POST', `${deletionsUrl}/${request_id}/retry`, leaver)).status, 401)
  barrier.open()
  const done = await completed(request_id)
  assert.deepEqual([done.requested_by, requested_by], [requested_by, `token:leaver (${made.id})`])
  assert.deepEqual(await minutesOfEverySignal(service, 'acme'), [8, 9])
})

test('while another process locks the control plane, nothing is accepted, hidden or half written', async () => {
  const other = openSecondHandle(join(dataDir, 'control.db'))
  const before = await service.read(deletionsUrl, pageOf(DeletionRequest))
  await whileLocked(other, async () => {
    assertRefused(await erase(range(8, 9)), 503, 'overloaded')
  })
  await other.destroy()
  assert.deepEqual(await service.read(deletionsUrl, pageOf(DeletionRequest)), before)
  assert.deepEqual(await minutesOfEverySignal(service, 'acme'), [8, 9])
  await eraseCompletely(service, range(8, 9))
  assert.deepEqual(await minutesOfEverySignal(service, 'acme'), [9])
})

test('a full erasure of an organisation without telemetry completes at once, also a second time', async () => {
  const all = { scope: 'all', confirm: 'acme' }
  assert.equal((await eraseCompletely(service, all)).detail.rows_erased, 3)
  for (let again = 0; again < 2; again++) {
    const { detail, status } = await eraseCompletely(service, all)
    assert.deepEqual([status, detail.rows_erased, detail.partitions_dropped], ['completed', 0, 0])
  }
  assert.equal((await readSample(service, 'acme/viewer')).storedRows, 0)
})
