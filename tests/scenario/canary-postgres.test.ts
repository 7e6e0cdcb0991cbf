// A service with its control plane on PostgreSQL, as an ordinary role. The text of an anomaly, and the note
// of a person about it, are unique and are searched for in every file of the server's data folder: they are
// found before the erasure, and afterwards only in the write-ahead log, which certificates name. A neighbour
// has such an anomaly too and keeps it. An erasure also survives a restart of the server and the end of its
// connections, and failovers to standbys, after which the service starts again; probes get an error while
// there is no server. Texts in settings, such as mutes, are kept as on every database.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { CertificateAnswer } from '../../contract/deletion/certificate.ts'
import { Anomaly, Detector } from '../../contract/detection/detectors.ts'
import { LedgerPage } from '../../contract/organisation/audit.ts'
import { StorageUsage } from '../../contract/organisation/usage.ts'
import { Readiness } from '../../contract/pages.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { formatInstant } from '../../contract/values/instant.ts'
import { findBreak } from '../../server/audit/chain.ts'
import { readChain } from '../../server/audit/log.ts'
import { systemClock } from '../../server/core/clock.ts'
import type { Failpoint } from '../../server/deletion/attempt/eraser.ts'
import { temporaryFolder } from '../fixtures.ts'
import { openDatabase } from '../postgres-plane.ts'
import {
  askServer,
  type PostgresServer,
  programOf,
  role,
  startPostgres,
  startStandby,
} from '../postgres-server.ts'
import { openCuttingProxy } from '../races/cutting-proxy.ts'
import { waitFor } from '../wait-for.ts'
import { Canaries, filesWithCanaries } from './canaries.ts'
import { deletionsUrl, instant, minute, minutesOf, requestIn } from './erasing.ts'
import { eraseCompletely, type Service, startService, type Who } from './service.ts'
import { superviseService } from './supervised.ts'
import { sampleExport, sendSample } from './telemetry.ts'

const database = 'lethe'
const serverSettings = { wal_level: 'replica', full_page_writes: 'on', max_wal_senders: '4' }
const server = await startPostgres(serverSettings)
const servers = [server]
/** The server that can be written. The service reaches it by an address that a failover moves. */
let primary = server
const proxy = await openCuttingProxy(server.socketPath)
const files = join(server.folder, 'data')
const admin = (...statements: string[]) => askServer(primary.folder, database, ...statements)
const dataDir = temporaryFolder()
const stopping: (() => void)[] = []

const settings = {
  LETHE_DATA_DIR: dataDir,
  LETHE_CONTROL_URL: `postgres://service@${proxy.host}:${proxy.port}/${database}`,
}

let atStep: Failpoint = async () => {}
let service: Service

before(async () => {
  await askServer(server.folder, 'postgres', 'create role service login', `create database ${database}`)
  // Its right in the database: to create tables.
  await admin('grant create on schema public to service')
  service = await startService({
    settings,
    failpoint: (name) => atStep(name),
  })
  // A search would miss a text that PostgreSQL has compressed.
  await admin('alter table held_anomaly_versions alter column record set storage external')
})
after(async () => {
  await service?.stop().finally(async () => {
    for (const stop of stopping) stop()
    await proxy.close()
    for (const one of servers) await one.stop()
  })
  rmSync(dataDir, { recursive: true, force: true })
})

async function sendJson(
  method: string,
  path: string,
  as: Who,
  json: unknown,
  status: number,
): Promise<string> {
  const answer = await service.send(method, path, { as, ...(json !== undefined && { json }) })
  assert.equal(answer.status, status, `${method} ${path}: ${answer.text}`)
  return answer.text
}

const anomaliesOf = async (as: Who) => (await service.read('/anomalies', pageOf(Anomaly), as)).items

const hourNs = 3_600_000_000_000n
const nowNs = systemClock.nowNs()

/** A gauge with one high value that a detector reports, and two notes of a person about it. */
async function plant(as: Who, startNs: bigint): Promise<Canaries> {
  const canaries = new Canaries()
  // Long, so that PostgreSQL stores the versions of the anomaly in a TOAST table.
  const shelf = `${canaries.text('anomaly group')} ${randomBytes(1000).toString('base64')}`
  const attributes = [{ key: 'shelf', value: { stringValue: shelf } }]
  const dataPoints = Array.from({ length: 30 }, (_, minute) => ({
    timeUnixNano: String(startNs + BigInt(minute) * 60_000_000_000n),
    attributes,
    asDouble: minute === 20 ? canaries.number('anomaly value') : 1,
  }))
  const metrics = [{ name: 'shelf.load', gauge: { dataPoints } }]
  await sendJson('POST', '/v1/metrics', as, { resourceMetrics: [{ scopeMetrics: [{ metrics }] }] }, 200)
  const detector = {
    name: 'Shelf',
    metric_key: 'shelf.load',
    method_key: 'threshold',
    params: { upper: 100, violate_n: 1 },
    scope: { group_by: 'shelf' },
    window_minutes: 600,
    schedule_minutes: 10_080,
    // The service would run it at once, and a second run beside that one is refused.
    enabled: false,
  }
  const { id } = Detector.parse(JSON.parse(await sendJson('POST', '/anomalies/detectors', as, detector, 201)))
  const ran = await sendJson('POST', `/anomalies/detectors/${id}/run`, as, undefined, 200)
  const [found] = await anomaliesOf(as)
  assert.ok(found !== undefined, `the anomaly to erase exists: ${ran}`)
  // The first note is kept as a version while a hold is in force, and is then only in rows that were deleted.
  const hold = await sendJson('POST', '/usage/storage/holds', as, { case_ref: 'case' }, 201)
  for (const place of ['earlier note', 'note']) {
    const verdict = { verdict: 'real', note: canaries.text(place) }
    await sendJson('POST', `/anomalies/${found.id}/feedback`, as, verdict, 200)
  }
  await sendJson('POST', `/usage/storage/holds/${JSON.parse(hold).id}/release`, as, undefined, 200)
  return canaries
}

/** Names of canaries by whether a file of the folder has them. Everything in memory is written before. */
async function searchFor(folder: string, canaries: Canaries): Promise<{ found: string[]; absent: string[] }> {
  await admin('checkpoint')
  const searched = [...filesWithCanaries(join(files, folder), canaries.all)]
  const named = (isFound: boolean) =>
    searched.filter(([, at]) => at.length > 0 === isFound).map(([name]) => name)
  return { found: named(true), absent: named(false) }
}

/** The folders of PostgreSQL except its write-ahead log; `base` has tables, indexes, TOAST and statistics. */
const folders = [
  'base',
  'global',
  'pg_stat',
  'pg_stat_tmp',
  'pg_xact',
  'pg_logical',
  'pg_subtrans',
  'pg_multixact',
]

test('after an erasure no file of PostgreSQL but its log has a byte of it, and the neighbour’s is complete', async () => {
  const neighbour = await plant('globex/owner', nowNs - 3n * hourNs)
  const erased = await plant('acme/owner', nowNs - 3n * hourNs)
  await admin('analyze')
  for (const canaries of [erased, neighbour]) {
    assert.deepEqual((await searchFor('base', canaries)).absent, [], 'the search finds all of them')
  }
  const done = await eraseCompletely(service, {
    scope: 'range',
    confirm: 'acme',
    range_end: formatInstant(nowNs - 2n * hourNs),
  })
  for (const folder of folders) {
    assert.deepEqual((await searchFor(folder, erased)).found, [], `something is left in ${folder}`)
  }
  assert.deepEqual((await searchFor('base', neighbour)).absent, ['earlier note'], 'which was deleted too')
  assert.equal((await anomaliesOf('globex/owner')).length, 1)

  assert.deepEqual(
    (await searchFor('pg_wal', erased)).absent,
    [],
    'the log has all of it until it is overwritten',
  )
  const path = `${deletionsUrl}/${done.request_id}/certificate`
  const { certificate } = await service.read(path, CertificateAnswer, 'acme/owner')
  for (const place of [
    /write-ahead log.*archives/,
    /Standbys/,
    /Dumps, base backups/,
    /Log files of that server/,
  ]) {
    assert.equal(certificate.exclusions.filter((text) => place.test(text)).length, 1, String(place))
  }
})

test('an erasure continues by itself after a restart of PostgreSQL, and after its connections were ended while it rewrites', async () => {
  // Detectors report nothing about the time that was erased before.
  const erased = await plant('acme/owner', nowNs - hourNs)
  const [before] = await anomaliesOf('globex/owner')
  const interrupted: string[] = []
  const once = async (name: string, interrupt: () => Promise<unknown>) => {
    if (interrupted.includes(name)) return
    interrupted.push(name)
    await interrupt()
  }
  let ending: Promise<unknown> = Promise.resolve()
  atStep = async (name) => {
    if (name === 'anomalies removed') await once(name, () => server.whileStopped(() => {}))
    if (name === 'before read-back') await once(name, endConnections)
    if (name !== 'step recorded' || !interrupted.includes('anomalies removed')) return
    await once(name, async () => {
      ending = endWhileRewriting(await readForLong('anomalies'))
    })
  }
  const body = { scope: 'all', confirm: 'acme' }
  const asked = await service.send('POST', deletionsUrl, { as: 'acme/owner', json: body })
  const path = `${deletionsUrl}/${requestIn(asked, 202).request_id}`
  // While the database is gone it is not known how far the erasure is.
  const { status } = await waitFor(
    async () => {
      const answer = await service.send('GET', path)
      return answer.status === 503 ? { status: 'unknown' } : requestIn(answer, 200)
    },
    (request) => request.status === 'completed',
  )
  await ending
  assert.equal(status, 'completed')
  assert.deepEqual(interrupted.toSorted(), ['anomalies removed', 'before read-back', 'step recorded'])
  assert.deepEqual((await searchFor('base', erased)).found, [])
  assert.deepEqual(await anomaliesOf('acme/owner'), [])
  assert.deepEqual(await anomaliesOf('globex/owner'), [before])
})

const probe = async () => {
  const { headers, status, text } = await service.send('GET', '/readyz')
  return { status, retry: headers.get('retry-after'), said: Readiness.parse(JSON.parse(text)) }
}

test('while PostgreSQL is stopped the service is alive and not ready, and says why; afterwards it is ready by itself', async () => {
  const ready = { status: 200, retry: null, said: { status: 'ok', clock: 'ok' } }
  assert.deepEqual(await probe(), ready)
  await server.whileStopped(async () => {
    const unready = await waitFor(probe, ({ status }) => status === 503)
    const detail = 'The control-plane database does not answer; repeat after Retry-After.'
    const said = { status: 'control_unavailable', detail, clock: 'ok' }
    assert.deepEqual(unready, { status: 503, retry: '1', said })
    assert.equal((await service.send('GET', '/healthz')).status, 200)
    assert.match((await service.send('GET', '/metrics')).text, /^lethe_control_up 0$/m)
  })
  assert.deepEqual(await waitFor(probe, ({ status }) => status === 200), ready)
})

const endConnections = () =>
  admin("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'service'")

/**
 * Reads a table in a transaction that stays open, so that the table can't be rewritten. Returns its end.
 */
async function readForLong(table: string): Promise<() => void> {
  const reader = spawn(programOf('psql'), ['-h', server.folder, '-U', role, '-d', database, '-Atq'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const hasRead = new Promise((resolve) => reader.stdout.once('data', resolve))
  reader.stdin.write(`begin; select count(*) from ${table};\n`)
  await hasRead
  return () => reader.stdin.end()
}

async function endWhileRewriting(release: () => void): Promise<void> {
  const waiting =
    "select count(*) from pg_stat_activity where usename = 'service' and wait_event_type = 'Lock' and query like 'vacuum%'"
  await waitFor(
    () => admin(waiting),
    (count) => count === '1',
  )
  await endConnections()
  release()
}

async function addStandby(): Promise<PostgresServer> {
  const standby = await startStandby(primary, serverSettings)
  servers.push(standby)
  return standby
}

/** The primary crashes; the service sees that, and then the standby replaces it at its address. */
async function failOver(standby: PostgresServer): Promise<void> {
  await primary.crash()
  await waitFor(probe, ({ status }) => status === 503)
  await askServer(standby.folder, 'postgres', 'select pg_promote()')
  primary = standby
  proxy.moveTo(standby.socketPath)
  void service.app.failedOver.then(() => {
    mustRestart = true
  })
}

let mustRestart = false

/** What the watchdog does for a service that has a process of its own. */
async function restartService(): Promise<void> {
  mustRestart = false
  const detail = 'Another server has taken over the control-plane database; the service starts again.'
  await waitFor(probe, ({ said }) => said.detail === detail)
  await service.stop()
  service = await startService({ settings, secrets: service.secrets, failpoint: (name) => atStep(name) })
}

const createToken = (name: string) =>
  service.send('POST', '/tokens', { as: 'acme/owner', json: { name, role: 'viewer' } })

/**
 * Sends and creates, again and again, until globex's erasure is completed. Whatever is not accepted must be
 * refused as something to repeat. Returns what was accepted.
 */
async function workUntilErased(requestId: string): Promise<{ tokens: string[]; timesNs: bigint[] }> {
  const [tokens, timesNs]: [string[], bigint[]] = [[], []]
  let turn = 0n
  const work = async () => {
    if (mustRestart) await restartService()
    turn++
    const created = await createToken(`token ${turn}`)
    if (created.status === 201) tokens.push(JSON.parse(created.text).id)
    const timeNs = minute(100) + turn
    const json = sampleExport('logs', [timeNs])
    const sent = await service.send('POST', '/v1/logs', { as: 'acme/ingest', json })
    if (sent.status === 200) timesNs.push(timeNs)
    const asked = await service.send('GET', `${deletionsUrl}/${requestId}`, { as: 'globex/owner' })
    for (const { status, text } of [created, sent, asked]) {
      assert.ok([200, 201, 503].includes(status), `${status}: ${text}`)
    }
    return asked
  }
  await waitFor(work, ({ status, text }) => status === 200 && JSON.parse(text).status === 'completed')
  return { tokens, timesNs }
}

test('a failover to a synchronous standby during an erasure: the service starts again and continues, and nothing that it acknowledged is lost', async () => {
  const standby = await addStandby()
  await admin("alter system set synchronous_standby_names = '*'", 'select pg_reload_conf()')
  await waitFor(
    () => admin('select sync_state from pg_stat_replication'),
    (state) => state === 'sync',
  )
  const minutes = [0, 1, 2, 3]
  for (const as of ['acme/owner', 'globex/owner'] as const) await sendSample(service, as, minutes.map(minute))
  assert.deepEqual(await minutesOf(service, 'globex'), minutes, 'there is something to erase')

  let hasFailedOver = false
  atStep = async (name) => {
    if (name !== 'step recorded' || hasFailedOver) return
    hasFailedOver = true
    await failOver(standby)
  }
  const range = { range_start: instant(0), range_end: instant(2) }
  const json = { scope: 'range', confirm: 'globex', ...range }
  const asked = await service.send('POST', deletionsUrl, { as: 'globex/owner', json })
  const { request_id } = requestIn(asked, 202)
  const { timesNs, tokens } = await workUntilErased(request_id)
  assert.ok(hasFailedOver)
  assert.equal(await admin('select pg_is_in_recovery()'), 'f')
  assert.deepEqual(await minutesOf(service, 'globex'), [2, 3])
  assert.deepEqual(await minutesOf(service, 'acme'), minutes)
  const path = `${deletionsUrl}/${request_id}/certificate`
  await service.read(path, CertificateAnswer, 'globex/owner')

  const control = openDatabase(primary.folder, database)
  const stored = await control.selectFrom('access_tokens').select('id').execute()
  const ids = new Set(stored.map(({ id }) => id))
  assert.deepEqual([tokens.length > 0, tokens.filter((id) => !ids.has(id))], [true, []])
  for (const table of ['audit_entries', 'ledger_entries'] as const) {
    for (const tenantId of ['acme', 'globex']) {
      assert.equal(findBreak(await readChain(control, table, tenantId)), null)
    }
  }
  await control.destroy()
  const logs = `range_start=${instant(100)}&range_end=${instant(101)}&limit=500`
  const { text } = await service.send('GET', `/telemetry/logs?${logs}`, { as: 'acme/viewer' })
  for (const timeNs of timesNs.slice(-300)) assert.ok(text.includes(`paid at ${timeNs}`), String(timeNs))
  assert.ok(timesNs.length > 0)
})

test('after a failover to a standby that lacks the last commits the service starts again by itself, knows its erasures, and accepts no token that was lost', async () => {
  await service.stop()
  const process = await superviseService(settings)
  stopping.push(process.stop)
  const standby = await addStandby()
  const onStandby = (...statements: string[]) => askServer(standby.folder, 'postgres', ...statements)
  await onStandby("alter system set primary_conninfo = ''", 'select pg_reload_conf()')
  await waitFor(
    () => onStandby('select count(*) from pg_stat_wal_receiver'),
    (count) => count === '0',
  )
  const owner = service.secretOf('globex/owner')
  const lost = JSON.parse(
    (await process.send('POST', '/tokens', owner, { name: 'is lost', role: 'viewer' })).text,
  )
  assert.equal((await process.send('GET', '/me', lost.token)).status, 200)
  const seen = () =>
    process.send('GET', '/usage/storage', owner).then(({ text }) => StorageUsage.parse(JSON.parse(text)))
  assert.ok((await seen()).rows > 0, 'there is something to erase')
  const { request_id } = JSON.parse(
    (await process.send('POST', deletionsUrl, owner, { scope: 'all', confirm: 'globex' })).text,
  )
  const request = () => process.send('GET', `${deletionsUrl}/${request_id}`, owner)
  await waitFor(request, ({ text }) => JSON.parse(text).status === 'completed')

  await primary.crash()
  await onStandby('select pg_promote()')
  primary = standby
  proxy.moveTo(standby.socketPath)
  await process.restarted()
  assert.match(process.said(), /another server has taken over the control-plane database/)
  assert.equal((await process.send('GET', '/me', lost.token)).status, 401)
  assert.equal((await seen()).rows, 0)
  const { status, text } = await request()
  assert.deepEqual([status, JSON.parse(text).status], [200, 'completed'], text)
  const ledger = await process.send('GET', `/ledger?request_id=${request_id}`, owner)
  const actors = LedgerPage.parse(JSON.parse(ledger.text)).items.map(({ actor }) => actor)
  assert.deepEqual([...new Set(actors)], ['system:restore-guard'])
})
