// The whole service against its own clock: set back between a backup and an erasure, wrong when an
// organisation was founded, and a year ahead for one pass. What is erased, and which backups still have it,
// never depends on a date.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, afterEach, beforeEach, test } from 'node:test'
import { signals } from '../../server/telemetry/schema/tables.ts'
import { confirmClock } from '../../server/worker/clock-watch.ts'
import { InProcess } from '../simulation/in-process.ts'
import { newOrganisations, populate } from '../simulation/simulation.ts'
import { exportOf, startMs } from '../simulation/telemetry.ts'

const secondMs = 1000
const dayMs = 86_400_000
const yearMs = 365 * dayMs
const acme = newOrganisations()[0] ?? assert.fail()
const globex = newOrganisations()[1] ?? assert.fail()

let service: InProcess
/** Error of the clock while the organisations are founded. */
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
    await service.setClock(foundedMs)
    await populate(app, service.control, newOrganisations(), async () => {})
    await service.setClock(-foundedMs)
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

/** Requests an erasure of everything acme has and carries it out; returns its id. */
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

async function backUp(keepDays = 3650): Promise<string> {
  return (await service.backUp(keepDays)) ?? assert.fail('The backup failed.')
}

/** Ids of the backups that the certificate names, and until when the request says that they exist. */
async function backupsOf(requestId: string) {
  const { certificate } = await read(`/usage/storage/deletions/${requestId}/certificate`)
  const ids = certificate.backups.map(({ backup_id }: { backup_id: string }) => backup_id).sort()
  const clearBy = (await read(`/usage/storage/deletions/${requestId}`)).backups_clear_by
  assert.equal(certificate.times.backups_clear_by, clearBy)
  return { ids, clearBy }
}

const idOf = (folder: string) => folder.split('/').at(-1) ?? ''

test('a certificate names exactly the backups taken before the erasure, wherever the clock was set in between', async () => {
  await start()
  const taken: string[] = []
  for (const byMs of [-2 * secondMs, -20 * dayMs, 20 * dayMs]) {
    await send()
    taken.push(idOf(await backUp()))
    await service.setClock(byMs)
    const id = await erase()
    assert.equal(await rows(), 0)
    // Taken with a correct clock, and so at a time before or after the erasure's.
    await service.setClock(-byMs)
    const after = idOf(await backUp())
    const { clearBy, ids } = await backupsOf(id)
    assert.deepEqual(ids, taken.toSorted(), `the clock was set by ${byMs} ms; the other is ${after}`)
    assert.ok(clearBy !== null)
    taken.push(after)
  }
})

test('what was erased stays erased after a restore, although a fast clock founded the organisation', async () => {
  foundedMs = 3 * dayMs
  await start()
  await send()
  await send(globex)
  const backup = await backUp()
  await erase()
  assert.equal(await rows(), 0)
  await service.restore(backup, true)
  assert.deepEqual([await visibleRows(), await rows()], [0, 0])
  assert.equal(await rows(globex), 6, 'the neighbour has what the backup had')
})

/**
 * The two ways to erase by date, and a deletion that waits for its date: the rows and backups that are left.
 */
async function left() {
  const { status } = await read(`/usage/storage/deletions/${delayed}`)
  return { rows: await rows(), isBackedUp: existsSync(backup), delayed: status }
}
let backup = ''
let delayed = ''

/** Retention of a week, a backup for 30 days, and an erasure that begins in 30 days. */
async function startDated(): Promise<void> {
  await start()
  await send()
  const rule = { logs_days: 7, metrics_days: 7, traces_days: 7 }
  const set = await service.ask('PUT', '/usage/storage/retention', { secret: acme.secrets[0], json: rule })
  assert.equal(set.status, 200)
  for (const _ of ['asked for', 'carried out']) await service.round(null)
  assert.equal(await rows(), 3, 'rows older than a week were erased while the clock was right')
  backup = await backUp(30)
  const asked = await service.ask('POST', '/usage/storage/deletions', {
    secret: acme.secrets[0],
    json: { scope: 'range', range_end: '2026-01-01T00:00:00Z', confirm: 'acme', delay_minutes: 43_200 },
  })
  assert.equal(asked.status, 202, JSON.stringify(asked.body))
  delayed = asked.body.request_id
}

const untouched = { rows: 3, isBackedUp: true, delayed: 'scheduled' }
const erased = { rows: 0, isBackedUp: false, delayed: 'completed' }

async function clockSaid() {
  const ready = await service.ask('GET', '/readyz', { secret: acme.secrets[0] })
  const metrics = await service.app.http.inject({ url: '/metrics' })
  const gauge = /^lethe_clock_in_doubt (.*)$/m.exec(metrics.body)?.[1]
  assert.equal(gauge, ready.body.clock === 'in_doubt' ? '1' : '0')
  return ready.body.clock
}

test('a clock that is a year ahead for one pass erases nothing by its date until the operator confirms it', async () => {
  await startDated()
  assert.equal(await clockSaid(), 'ok')
  await service.setClock(yearMs)
  await service.round(null)
  await service.setClock(-yearMs)
  assert.deepEqual([await left(), await clockSaid()], [untouched, 'in_doubt'])
  await service.setClock(yearMs)
  await service.restart()
  assert.equal(await clockSaid(), 'in_doubt', 'before the first pass')
  await service.round(null)
  await service.setClock(-yearMs)
  await service.crash()
  await service.advance(40 * dayMs)
  await service.round(null)
  assert.deepEqual(await left(), untouched)
  // Of another day than the clock has: a confirmation from while it was wrong.
  await confirmClock(service.control, service.nowMs() + yearMs)
  await service.round(null)
  assert.deepEqual(await left(), untouched)
  // A person's request continues.
  await send(globex)
  await confirmClock(service.control, service.nowMs())
  await service.round(null)
  await service.round(null)
  assert.deepEqual(await left(), erased)
  assert.equal(await clockSaid(), 'ok')
  assert.equal(await rows(globex), 6)
})

test('time that passes, and a correction of less than a day, are not a jump of the clock; a jump stops no erasure that a person requests, and no backup', async () => {
  await startDated()
  for (let day = 0; day < 40; day++) {
    await service.advance(dayMs)
    await service.setClock(day % 2 === 0 ? -20 * 3600 * secondMs : 20 * 3600 * secondMs)
    if (day % 10 === 0) await service.round(null)
  }
  await service.round(null)
  await service.round(null)
  assert.equal(await clockSaid(), 'ok')
  assert.deepEqual(await left(), erased)
  await send()
  await service.setClock(-yearMs)
  await service.round(null)
  assert.equal(await clockSaid(), 'in_doubt')
  await backUp()
  await erase()
  assert.equal(await rows(), 0)
})
