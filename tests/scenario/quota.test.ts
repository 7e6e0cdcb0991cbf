// Quotas for senders and operators: set by the command line beside a running service, applied to every
// protocol, reported in each protocol's form, and kept over a restart.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { IngestUsage, StorageUsage } from '../../contract/organisation/usage.ts'
import { temporaryFolder } from '../fixtures.ts'
import { encodeProto } from '../otlp/otlp-messages.ts'
import { compress, contentTypes, encodeRequest } from '../prometheus/remote-write-messages.ts'
import { type Ended, nodeFlags, runLethe } from './command-line.ts'
import type { ChildOptions } from './crash-child.ts'
import { GrpcClient } from './grpc-client.ts'
import { type Answer, type Service, startService, type Tenant } from './service.ts'
import { mondayNs, sampleExport } from './telemetry.ts'

const folder = temporaryFolder()
let service: Service
let grpc: GrpcClient

before(async () => {
  service = await startService({ settings: { LETHE_DATA_DIR: folder } })
  grpc = new GrpcClient(service.app.grpcAddress() ?? assert.fail('no gRPC'))
})
after(async () => {
  grpc.close()
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
})

function lethe(words: readonly string[], dataDir = folder): Promise<Ended> {
  return runLethe({ PATH: process.env.PATH, LETHE_DATA_DIR: dataDir }, words)
}

const records = (count: number) =>
  sampleExport(
    'logs',
    Array.from({ length: count }, (_, i) => mondayNs + BigInt(i)),
  )
const usageOf = (tenant: Tenant) => service.read('/usage/ingest', IngestUsage, `${tenant}/viewer`)
const storedOf = async (tenant: Tenant) =>
  (await service.read('/usage/storage', StorageUsage, `${tenant}/viewer`)).rows

function sendHttp(tenant: Tenant, count: number): Promise<Answer> {
  return service.send('POST', '/v1/logs', { as: `${tenant}/ingest`, json: records(count) })
}

function sendRemoteWrite(tenant: Tenant, count: number): Promise<Answer> {
  const samples = Array.from({ length: count }, (_, i) => ({ value: i, timestamp: 1000 + i }))
  return service.send('POST', '/api/v1/write', {
    as: `${tenant}/ingest`,
    body: compress(encodeRequest('1.0', [{ labels: { __name__: 'x' }, samples }])),
    headers: { 'content-type': contentTypes['1.0'], 'content-encoding': 'snappy' },
  })
}

function sendGrpc(tenant: Tenant, count: number) {
  return grpc.export('logs', encodeProto('logs', records(count)), service.secretOf(`${tenant}/ingest`))
}

test('without a quota nothing is refused, and accepted telemetry is counted', async () => {
  const bytes = Buffer.byteLength(JSON.stringify(records(3)))
  assert.equal((await sendHttp('globex', 3)).status, 200)
  const { limits, today, days } = await usageOf('globex')
  assert.deepEqual(limits, { rows_per_second: null, burst_rows: null, bytes_per_day: null })
  assert.deepEqual([today.bytes, today.rows_accepted, today.rows_rejected], [bytes, 3, 0])
  assert.deepEqual(days, [today])
})

test('above its rows a second an organisation is refused by every protocol, and no other organisation is', async () => {
  const set = await lethe(['quota', 'set', '--org', 'acme', '--rows-per-second', '1'])
  assert.deepEqual([set.code, set.err], [0, ''])
  assert.match(set.out, /rows per second: 1\nbytes per day: {3}unlimited/)
  assert.equal(
    (await sendHttp('acme', 200)).status,
    200,
    'a full bucket accepts a large request, and is then in debt',
  )
  const stored = await storedOf('acme')

  const http = await sendHttp('acme', 1)
  assert.equal(http.status, 429)
  const waitSeconds = Number(http.headers.get('retry-after'))
  assert.ok(waitSeconds > 100 && waitSeconds <= 191, String(waitSeconds))
  const { code, message } = JSON.parse(http.text)
  assert.deepEqual(
    [code, message],
    [8, 'Your organisation may send 1 rows a second, and has sent more; repeat after Retry-After.'],
  )

  const viaGrpc = await sendGrpc('acme', 1)
  assert.equal(viaGrpc.code, 8)
  assert.ok((viaGrpc.retrySeconds ?? 0) > 100, JSON.stringify(viaGrpc))

  const written = await sendRemoteWrite('acme', 1)
  assert.equal(written.status, 429)
  assert.equal(JSON.parse(written.text).code, 'quota_exceeded')
  assert.ok(Number(written.headers.get('retry-after')) > 100)

  assert.equal(await storedOf('acme'), stored)
  const { limits, today } = await usageOf('acme')
  assert.deepEqual(limits, { rows_per_second: 1, burst_rows: 10, bytes_per_day: null })
  assert.deepEqual([today.rows_accepted, today.requests_refused], [200, 3])
  for (const answer of [await sendHttp('globex', 500), await sendRemoteWrite('globex', 500)]) {
    assert.ok(answer.status === 200 || answer.status === 204)
  }
  assert.equal((await sendGrpc('globex', 500)).code, 0)
})

test('after the quota is removed the next request is accepted', async () => {
  assert.equal((await lethe(['quota', 'set', '--org', 'acme', '--rows-per-second', 'unlimited'])).code, 0)
  assert.equal((await sendGrpc('acme', 100)).code, 0)
})

test('many requests at once get exactly the bytes of the day, and no more after a restart', async () => {
  const body = records(10)
  const size = Buffer.byteLength(JSON.stringify(body))
  const { today } = await usageOf('acme')
  const limit = today.bytes + 5 * size
  assert.equal((await lethe(['quota', 'set', '--org', 'acme', '--bytes-per-day', String(limit)])).code, 0)
  const stored = await storedOf('acme')
  const [answers, others] = await Promise.all([
    Promise.all(Array.from({ length: 60 }, () => sendHttp('acme', 10))),
    Promise.all(Array.from({ length: 20 }, () => sendHttp('globex', 10))),
  ])
  const statuses = answers.map(({ status }) => status)
  assert.deepEqual(
    [statuses.filter((status) => status === 200).length, statuses.filter((status) => status === 429).length],
    [5, 55],
  )
  assert.ok(others.every(({ status }) => status === 200))
  assert.equal(await storedOf('acme'), stored + 50)
  const refused = answers.find(({ status }) => status === 429)
  assert.ok(Number(refused?.headers.get('retry-after')) <= 86_400)
  assert.equal((await usageOf('acme')).today.bytes, limit)
})

test('after kill -9 the day continues with every acknowledged byte counted', async () => {
  const dataDir = temporaryFolder()
  const secret = 'acme-owner-secret-of-32-characters!'
  const send = (address: string) =>
    fetch(`${address}/v1/logs`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(records(10)),
    })
  const size = Buffer.byteLength(JSON.stringify(records(10)))
  const first = await startChild({ dataDir, organisations: [{ tenantId: 'acme', secret }] })
  const set = await lethe(['quota', 'set', '--org', 'acme', '--bytes-per-day', String(20 * size)], dataDir)
  assert.equal(set.code, 0, set.err)
  const acknowledged = await Promise.all(Array.from({ length: 19 }, () => send(first.address)))
  first.child.kill('SIGKILL')
  assert.ok(acknowledged.every(({ status }) => status === 200))
  await first.ended

  const second = await startChild({ dataDir, organisations: [] })
  const shown = await lethe(['quota', 'show', '--org', 'acme'], dataDir)
  assert.match(shown.out, new RegExp(` ${19 * size} bytes  190 rows accepted `))
  assert.deepEqual([(await send(second.address)).status, (await send(second.address)).status], [200, 429])
  second.child.kill('SIGTERM')
  await second.ended
  rmSync(dataDir, { recursive: true, force: true })
})

async function startChild(options: ChildOptions) {
  const child = spawn(
    process.execPath,
    [...nodeFlags, 'tests/scenario/crash-child.ts', JSON.stringify(options)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const ended = once(child, 'exit')
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  return { child, ended, address: JSON.parse(line).address as string }
}

test('the command line refuses an invalid limit and an unknown organisation', async () => {
  const cases = [
    [['--org', 'acme'], /Name the limit to change/],
    [['--org', 'acme', '--rows-per-second', '0'], /--rows-per-second must be an integer from 1/],
    [['--org', 'acme', '--bytes-per-day', '-1'], /--bytes-per-day must be/],
    [['--org', 'acme', '--bytes-per-day', '1e3'], /--bytes-per-day must be/],
    [['--org', 'nobody', '--bytes-per-day', '1'], /There is no organisation nobody/],
  ] as const
  for (const [args, message] of cases) {
    const { code, err } = await lethe(['quota', 'set', ...args])
    assert.equal(code, 1)
    assert.match(err, message)
  }
})
