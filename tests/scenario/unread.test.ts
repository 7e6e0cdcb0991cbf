// Clients that ask for a page of telemetry, read its beginning and wait, while the telemetry is erased. What
// the process has not passed to the system by then never leaves it. Each page is one span whose texts grow
// sixfold in JSON, because the buffers of the systems accept several megabytes.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { formatInstant } from '../../contract/values/instant.ts'
import { encodeProto } from '../otlp/otlp-messages.ts'
import { eraseCompletely, type Service, startService, type Tenant } from './service.ts'
import { minuteNs, mondayNs, sendSample } from './telemetry.ts'

/**
 * A value may have 32 KiB, and a span has no attributes above 8 MiB of JSON. Two pages are less than an
 * organisation may have unread.
 */
const [events, chars] = [45, 30_000]
const hour = (number: number): string => formatInstant(mondayNs + BigInt(number) * 60n * minuteNs)

let service: Service
const clients: Socket[] = []

before(async () => {
  service = await startService()
  for (const tenant of ['acme', 'globex'] as const) {
    await sendSample(service, `${tenant}/ingest`, [mondayNs])
    const timeUnixNano = String(mondayNs + 61n * minuteNs)
    const attributes = [{ key: 'text', value: { stringValue: '\u0001'.repeat(chars) } }]
    const span = {
      traceId: 'a'.repeat(32),
      spanId: 'b'.repeat(16),
      name: `span of ${tenant}`,
      startTimeUnixNano: timeUnixNano,
      endTimeUnixNano: timeUnixNano,
      events: Array.from({ length: events }, () => ({ timeUnixNano, name: 'event', attributes })),
    }
    const sent = await service.send('POST', '/v1/traces', {
      as: `${tenant}/ingest`,
      body: encodeProto('traces', { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] }),
      headers: { 'content-type': 'application/x-protobuf' },
    })
    assert.deepEqual([sent.status, sent.text], [200, ''])
  }
})
after(async () => {
  for (const client of clients) client.destroy()
  await service.stop()
})

/**
 * Asks for the page and reads its beginning. The function that is returned reads the rest; it returns whether
 * that was all.
 */
async function askAndWait(tenant: Tenant): Promise<() => Promise<boolean>> {
  const { host, hostname, port } = new URL(service.address)
  const client = connect(Number(port), hostname)
  clients.push(client)
  const closed = new Promise((resolve) => client.on('error', () => {}).once('close', resolve))
  const path = `/telemetry/spans?range_start=${hour(1)}&range_end=${hour(2)}`
  const secret = service.secretOf(`${tenant}/viewer`)
  client.write(
    `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\nauthorization: Bearer ${secret}\r\n\r\n`,
  )
  const [data]: Buffer[] = await once(client, 'data')
  client.pause()
  const begun = String(data)
  const length = Number(/content-length: (\d+)/i.exec(begun)?.[1])
  assert.ok(length > 6 * events * chars, begun.slice(0, 400))
  const headBytes = begun.indexOf('\r\n\r\n') + 4
  assert.ok(begun.includes(`span of ${tenant}`), begun.slice(0, 400))
  return async () => {
    client.resume()
    await closed
    return client.bytesRead === headBytes + length
  }
}

test('a client that reads slowly gets no more of a page once something in it is hidden, and others get all of theirs', async () => {
  const [own, another, neighbour] = [
    await askAndWait('acme'),
    await askAndWait('acme'),
    await askAndWait('globex'),
  ]
  const elsewhere = { scope: 'range', range_end: hour(1), confirm: 'acme' }
  assert.equal((await eraseCompletely(service, elsewhere)).status, 'completed')
  assert.equal(await another(), true)
  const { status } = await eraseCompletely(service, { scope: 'all', confirm: 'acme' })
  assert.equal(status, 'completed')
  assert.equal(await own(), false)
  assert.equal(await neighbour(), true)
})
