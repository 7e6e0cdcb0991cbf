// Attributes may have any name, also one that every JavaScript object has or that changes its prototype. What
// is stored under such a name is returned under it wherever attributes are returned; a filter by it filters;
// and a body that misuses it is refused like any other unknown field.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { formatInstant } from '../../contract/values/instant.ts'
import { systemClock } from '../../server/core/clock.ts'
import { type Service, startService } from './service.ts'

const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'plain'] as const
const minuteNs = 60_000_000_000n
const nowNs = (systemClock.nowNs() / minuteNs) * minuteNs
const range = `range_start=${formatInstant(nowNs - 120n * minuteNs)}&range_end=${formatInstant(nowNs)}`

let service: Service
before(async () => {
  service = await startService({ settings: { LETHE_GRPC_PORT: 'off' } })
})
after(() => service.stop())

type Attributes = readonly (readonly [key: string, value: string])[]

const otlp = (attributes: Attributes) =>
  attributes.map(([key, stringValue]) => ({ key, value: { stringValue } }))

/** The map as JSON text, written without an intermediate object. */
const textOf = (attributes: Attributes) =>
  `{${attributes.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`

const sorted = (map: Readonly<Record<string, string>>): [string, string][] =>
  Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1))

async function get(path: string) {
  const answer = await service.send('GET', path)
  assert.equal(answer.status, 200, `${path}: ${answer.text}`)
  return JSON.parse(answer.text)
}

const post = (path: string, body: string) =>
  service.send('POST', path, { body, headers: { 'content-type': 'application/json' } })

const someAttributes = fc
  .uniqueArray(
    fc.tuple(
      fc.oneof(fc.constantFrom(...names, ''), fc.string({ unit: 'grapheme', maxLength: 12 })),
      fc.string({ maxLength: 8 }),
    ),
    { selector: ([key]) => key, minLength: 1, maxLength: 6 },
  )
  .filter((pairs) => pairs.every(([key]) => key !== 'service.name' && !/[\ud800-\udfff\ufffd]/u.test(key)))

let minute = 0

test('a record has the same attributes when it is read as when it was sent', async () => {
  const property = fc.asyncProperty(someAttributes, someAttributes, async (own, resource) => {
    minute = (minute % 100) + 1
    const at = nowNs - BigInt(minute) * minuteNs
    const run = `run-${fc.stringify([own, resource]).length}-${minute}-${systemClock.nowNs()}`
    const attributes = otlp([...own, ['run', run]])
    const resourceOf = { attributes: otlp(resource) }
    const time = String(at)
    const event = { timeUnixNano: time, name: 'e', attributes: otlp(own) }
    const link = { traceId: '1'.repeat(32), spanId: '1'.repeat(16), attributes: otlp(own) }
    const span = {
      traceId: '1'.repeat(32),
      spanId: '1'.repeat(16),
      name: 'x',
      startTimeUnixNano: time,
      endTimeUnixNano: time,
      attributes,
      events: [event],
      links: [link],
    }
    const logs = [{ resource: resourceOf, scopeLogs: [{ logRecords: [{ timeUnixNano: time, attributes }] }] }]
    const traces = [{ resource: resourceOf, scopeSpans: [{ spans: [span] }] }]
    for (const [path, body] of [
      ['/v1/logs', { resourceLogs: logs }],
      ['/v1/traces', { resourceSpans: traces }],
    ] as const) {
      const answer = await post(path, JSON.stringify(body))
      assert.deepEqual([answer.status, answer.text], [200, '{}'])
    }
    for (const path of ['/telemetry/logs', '/telemetry/spans']) {
      const { items } = await get(`${path}?${range}&attribute=${encodeURIComponent(`run=${run}`)}`)
      assert.equal(items.length, 1)
      const expected = sorted(Object.fromEntries([...own, ['run', run]]))
      assert.deepEqual(sorted(items[0].attributes), expected, path)
      assert.deepEqual(sorted(items[0].resource_attributes), sorted(Object.fromEntries(resource)), path)
      if (path.endsWith('logs')) continue
      assert.deepEqual(sorted(items[0].events[0].attributes), sorted(Object.fromEntries(own)))
      assert.deepEqual(sorted(items[0].links[0].attributes), sorted(Object.fromEntries(own)))
    }
  })
  await fc.assert(property, { numRuns: 12 })
})

for (const name of names) {
  test(`a series and an anomaly can be grouped and filtered by ${name}`, async () => {
    const metric = `of.${name.replaceAll('_', 'x')}`
    const dataPoints = Array.from({ length: 100 }, (_, i) => ({
      timeUnixNano: String(nowNs - BigInt(i + 1) * minuteNs),
      asDouble: 1,
      attributes: otlp([[name, i % 2 === 0 ? 'even' : 'odd']]),
    }))
    const metrics = [{ name: metric, unit: '1', gauge: { dataPoints } }]
    const sent = await post(
      '/v1/metrics',
      JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }] }),
    )
    assert.deepEqual([sent.status, sent.text], [200, '{}'])
    const { series } = await get(`/telemetry/series?metric_key=${metric}&group_by=${name}&${range}`)
    assert.deepEqual(series.map(({ labels }: { labels: Record<string, string> }) => sorted(labels)).sort(), [
      [[name, 'even']],
      [[name, 'odd']],
    ])
    const body = `{"name":"x","metric_key":"${metric}","method_key":"threshold","params":{"upper":0},"window_minutes":120,
      "schedule_minutes":60,"scope":{"group_by":"${name}","attributes":${textOf([[name, 'even']])}}}`
    const created = await post('/anomalies/detectors', body)
    assert.equal(created.status, 201, created.text)
    const detector = JSON.parse(created.text)
    assert.deepEqual(sorted(detector.scope.attributes), [[name, 'even']])
    assert.equal((await service.send('POST', `/anomalies/detectors/${detector.id}/run`)).status, 200)
    const { items } = await get(`/anomalies?detector_id=${detector.id}`)
    assert.deepEqual(
      items.map(({ group }: { group: Record<string, string> }) => sorted(group)),
      [[[name, 'even']]],
    )
    assert.deepEqual(sorted((await get(`/anomalies/${items[0].id}`)).group), [[name, 'even']])
    const muted = await post('/anomalies/mutes', `{"group":${textOf([[name, 'even']])},"open_ended":true}`)
    assert.equal(muted.status, 201, muted.text)
    assert.deepEqual(sorted(JSON.parse(muted.text).group), [[name, 'even']])
    await service.send('DELETE', `/anomalies/mutes/${JSON.parse(muted.text).id}`)
  })
}

test('an unknown field of such a name is refused, and never ignored', async () => {
  const detector = (params: string, more = '') =>
    `{"name":"x","metric_key":"logs.rate","method_key":"threshold","params":${params},"window_minutes":120,"schedule_minutes":60${more}}`
  for (const name of names) {
    const field = `"${name}":{"a":1}`
    const bodies = [
      ['/anomalies/detectors', detector(`{"upper":1,${field}}`)],
      ['/anomalies/detectors', detector('{"upper":1}', `,${field}`)],
      ['/anomalies/detectors', detector('{"upper":1}', `,"scope":{${field}}`)],
      ['/anomalies/mutes', `{"all_detectors":true,"open_ended":true,${field}}`],
      ['/usage/storage/holds', `{"case_ref":"x",${field}}`],
      ['/usage/storage/deletions/preview', `{"scope":"all",${field}}`],
      ['/tokens', `{"name":"x","role":"viewer",${field}}`],
    ] as const
    for (const [path, body] of bodies) {
      const answer = await post(path, body)
      assert.equal(answer.status, 422, `${path} ${body}: ${answer.text}`)
      const types = JSON.parse(answer.text).detail.map(({ type }: { type: string }) => type)
      assert.deepEqual(types, ['extra_forbidden'], `${path} ${body}`)
    }
    const values = await post('/anomalies/mutes', `{"group":{${field}},"open_ended":true}`)
    assert.equal(values.status, 422)
    assert.deepEqual(JSON.parse(values.text).detail[0].loc, ['body', 'group', name])
  }
})
