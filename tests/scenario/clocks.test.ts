// The whole service against its own clock: set back between a backup and an erasure, wrong when an organisation was
// founded, and a year ahead for one pass. What is erased, and what still holds it, never depends on a date.

import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, test } from 'node:test'
import { signals } from '../../server/telemetry/schema/tables.ts'
import { InProcess } from '../simulation/in-process.ts'
import { newOrganisations, populate } from '../simulation/simulation.ts'
import { exportOf, startMs } from '../simulation/telemetry.ts'

const secondMs = 1000
const dayMs = 86_400_000
const yearMs = 365 * dayMs
const acme = newOrganisations()[0] ?? assert.fail()
const globex = newOrganisations()[1] ?? assert.fail()

let service: InProcess
/** How wrong the clock is while the organisations are founded. */
let foundedMs = 0

beforeEach(async () => {
  service = new InProcess(startMs)
})
afterEach(async () => {
  foundedMs = 0
  await service.end()
})
after(() => setTimeout(() => process.exit(1), 30_000).unref())

async function start(): Promise<void> {
  await service.start(async (app) => {
    service.setClock(foundedMs)
    await populate(app, service.control, newOrganisations())
    service.setClock(-foundedMs)
  })
}

async function send(own = acme): Promise<void> {
  for (const signal of signals) {
    const table = ({ logs: 'otel_logs', metrics: 'otel_metrics_gauge', traces: 'otel_traces' } as const)[
      signal
    ]
    const rows = [10, 3].map((daysAgo) => ({
      id: `${daysAgo}`,
      table,
      timeNs: BigInt(startMs - daysAgo * dayMs) * 1_000_000n,
    }))
    const answer = await service.ask('POST', `/v1/${signal}`, {
      secret: own.secrets[0],
      json: exportOf(signal, rows),
    })
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
  }
}

async function rows(own = acme): Promise<number> {
  const counted = (await service.stored()).get(own.place.tenantId) ?? new Map<string, number>()
  return [...counted.values()].reduce((sum, n) => sum + n, 0)
}

async function visibleRows(own = acme): Promise<number> {
  const counted = await service.visible(own.place, ['otel_logs', 'otel_metrics_gauge', 'otel_traces'])
  return [...counted.values()].reduce((sum, n) => sum + n, 0)
}

/** Asks for an erasure of everything acme has and carries it out; answers its id. */
async function erase(): Promise<string> {
  const { body, status } = await service.ask('POST', '/usage/storage/deletions', {
    secret: acme.secrets[0],
    json: { scope: 'all', confirm: 'acme' },
  })
  assert.equal(status, 202, JSON.stringify(body))
  await service.round(null)
  assert.equal((await read(`/usage/storage/deletions/${body.request_id}`)).status, 'completed')
  return body.request_id
}

async function read(path: string) {
  const { body, status } = await service.ask('GET', path, { secret: acme.secrets[0] })
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

async function backUp(): Promise<string> {
  return (await service.backUp()) ?? assert.fail('The backup failed.')
}

/** Ids of the backups that the certificate names, and until when the request says that they hold. */
async function holdingOf(requestId: string) {
  const { certificate } = await read(`/usage/storage/deletions/${requestId}/certificate`)
  const ids = certificate.backups.map(({ backup_id }: { backup_id: string }) => backup_id).sort()
  const clearBy = (await read(`/usage/storage/deletions/${requestId}`)).backups_clear_by
  assert.equal(certificate.times.backups_clear_by, clearBy)
  return { ids, clearBy }
}

const idOf = (folder: string) => folder.split('/').at(-1)

test('a certificate names exactly the backups taken before the erasure, wherever the clock was set in between', async () => {
  for (const byMs of [-2 * secondMs, -20 * dayMs, 20 * dayMs]) {
    await start()
    await send()
    await send(globex)
    const before = await backUp()
    service.setClock(byMs)
    const id = await erase()
    assert.deepEqual([await rows(), await rows(globex)], [0, 6])
    // Taken by a clock that is right again, and so at a time before or after the erasure's.
    service.setClock(-byMs)
    const after = await backUp()
    const { clearBy, ids } = await holdingOf(id)
    assert.deepEqual(ids, [idOf(before)], `the clock was set by ${byMs} ms; the other is ${idOf(after)}`)
    assert.ok(clearBy !== null)
    await service.end()
    service = new InProcess(startMs)
  }
})

test('what was erased stays erased after a restore, although a fast or slow clock founded the organisation', async () => {
  for (const byMs of [3 * dayMs, -yearMs]) {
    foundedMs = byMs
    await start()
    await send()
    await send(globex)
    const backup = await backUp()
    await erase()
    assert.equal(await rows(), 0)
    await service.restore(backup, true)
    assert.deepEqual([await visibleRows(), await rows()], [0, 0], `founded ${byMs} ms off`)
    assert.equal(await rows(globex), 6, 'the neighbour has what the backup had')
    await service.end()
    service = new InProcess(startMs)
  }
})
