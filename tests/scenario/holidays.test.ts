// The holidays of a detector over HTTP: an office that is closed on a Wednesday is previewed without and with
// holidays, a mistyped holiday is corrected, and an incident on a holiday is found and explained.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Detector } from '../../contract/detection/detectors.ts'
import { DetectionMethod } from '../../contract/detection/methods.ts'
import { DetectorPreview } from '../../contract/detection/preview.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { placesOf, problemsOf, type Service, startService } from './service.ts'

const url = '/anomalies/detectors'
const hourMs = 3_600_000
/** Monday, seven and a half weeks before the end; in Berlin it is two hours later all the time. */
const firstMs = Date.UTC(2026, 8, 7)
const holiday = '2026-10-21'
const detector = {
  name: 'Orders',
  metric_key: 'orders',
  method_key: 'seasonal_band',
  window_minutes: 42 * 1440,
  schedule_minutes: 60,
}
/** By the hour of the week, so that no weekend is unusual. */
const office = { season: 'hour_of_week', timezone: 'Europe/Berlin' }

let service: Service
before(async () => {
  service = await startService()
  const dataPoints = Array.from({ length: 46 * 24 }, (_, i) => {
    const local = new Date(firstMs + (i + 2) * hourMs)
    const date = local.toISOString().slice(0, 10)
    const isOff = [0, 6].includes(local.getUTCDay()) || date === holiday
    const isOpen = !isOff && local.getUTCHours() >= 8 && local.getUTCHours() < 18
    const isBroken = date === holiday && local.getUTCHours() >= 14 && local.getUTCHours() < 18
    const value = isBroken ? 0 : 100 + ((i * 7) % 5) + (isOpen ? 400 : 0)
    return { timeUnixNano: `${firstMs + i * hourMs}000000`, asInt: String(value) }
  })
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }] }
  const metrics = [{ name: 'orders', gauge: { dataPoints } }]
  const json = { resourceMetrics: [{ resource, scopeMetrics: [{ metrics }] }] }
  const answer = await service.send('POST', '/v1/metrics', { as: 'acme/ingest', json })
  assert.deepEqual([answer.status, answer.text], [200, '{}'])
})
after(() => service.stop())

/** That Wednesday and the night before it. */
async function tryWith(params: object): Promise<DetectorPreview> {
  const range = { start: '2026-10-20T20:00:00Z', end: '2026-10-21T22:00:00Z' }
  const answer = await service.send('POST', `${url}/preview`, {
    as: 'acme/member',
    json: { ...detector, params: { ...office, ...params }, ...range },
  })
  assert.equal(answer.status, 200, answer.text)
  return DetectorPreview.parse(JSON.parse(answer.text))
}

test('a preview reports the closed office as an incident without holidays, and with them only the real incident', async () => {
  const [closed] = (await tryWith({})).anomalies
  assert.equal(closed?.started_at, '2026-10-21T06:00:00Z')
  assert.match(closed?.reason ?? '', /expected .* for a Wednesday/)
  const { anomalies, series } = await tryWith({ holidays: ['10-21'] })
  assert.deepEqual(
    anomalies.map(({ started_at }) => started_at),
    ['2026-10-21T12:00:00Z'],
  )
  assert.match(
    anomalies[0]?.reason ?? '',
    /^orders.* 0, expected .* for a holiday, Wednesday 1\d:00; 4 hours low/,
  )
  const points = series[0]?.points ?? []
  const upperAt = (time: string) => points.find((point) => point.time === time)?.upper ?? 0
  assert.ok(upperAt('2026-10-21T07:00:00Z') > 450, 'the first holiday may turn out to be a working day')
})

test('an invalid day is refused with its location by create, patch and preview, and nothing else changes', async () => {
  const holidays = ['2026-12-25', '25.12.2026', '2026-02-30']
  const wrong = ['body.params.holidays.1 value_error', 'body.params.holidays.2 value_error']
  const range = { start: '2026-10-20T20:00:00Z', end: '2026-10-21T22:00:00Z' }
  const refusals = [
    await service.send('POST', url, { json: { ...detector, params: { holidays } } }),
    await service.send('POST', `${url}/preview`, { json: { ...detector, ...range, params: { holidays } } }),
  ]
  const created = await service.send('POST', url, { json: { ...detector, params: { holidays: ['12-25'] } } })
  assert.equal(created.status, 201, created.text)
  const { id, params } = Detector.parse(JSON.parse(created.text))
  assert.deepEqual(params.holidays, ['12-25'])
  refusals.push(await service.send('PATCH', `${url}/${id}`, { json: { params: { holidays } } }))
  for (const refused of refusals) {
    const problems = problemsOf(refused)
    assert.deepEqual(placesOf(problems), wrong)
    const [{ input, msg } = assert.fail('there are two')] = problems
    assert.deepEqual(
      [input, msg],
      ['25.12.2026', 'Input should be a day without a time: "2026-12-25", or "12-25" for every year'],
    )
  }
  const many = await service.send('PATCH', `${url}/${id}`, {
    json: { params: { holidays: Array(367).fill('12-25') } },
  })
  assert.deepEqual(placesOf(problemsOf(many)), ['body.params.holidays too_long'])
  const headers = { 'content-type': 'application/merge-patch+json' }
  const body = JSON.stringify({ params: { holidays: ['12-25', '12-26'] } })
  const merged = await service.send('PATCH', `${url}/${id}`, { body, headers })
  assert.deepEqual(Detector.parse(JSON.parse(merged.text)).params, {
    ...params,
    holidays: ['12-25', '12-26'],
  })
})

test('the catalogue describes the list for forms', async () => {
  const { items } = await service.read('/anomalies/methods', pageOf(DetectionMethod))
  const { params_schema } =
    items.find(({ method_key }) => method_key === 'seasonal_band') ?? assert.fail('gone')
  const { holidays } = Object(params_schema.properties)
  const { default: none, description, items: entry, maxItems, type } = holidays
  assert.deepEqual([type, none, maxItems], ['array', [], 366])
  assert.deepEqual(
    [entry.type, entry.pattern, entry.examples],
    ['string', '^([0-9]{4}-)?[0-9]{2}-[0-9]{2}$', ['2026-12-25', '12-25']],
  )
  assert.match(description, /"12-25" for every year/)
})
