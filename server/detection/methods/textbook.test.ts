// Each method on the anomaly it is made for, through the whole evaluation with default parameters: it is
// found while it lasts, the same series without it raises nothing there, and erasing it leaves no trace.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { methodParams } from '../../../contract/detection/methods.ts'
import { evaluateSeries } from '../runs/evaluate.ts'
import { seededNormal } from '../scoring/seeded-noise.ts'
import { eraseFrom, type Series } from '../scoring/series.ts'
import type { MethodChoice } from './catalogue.ts'

const startNs = 1_800_000_000_000_000_000n
const stepMinutes = 5
const perDay = 288
const days = 10

interface Textbook {
  readonly choice: MethodChoice
  readonly usual: (i: number, noise: number) => number
  /** The values of the anomaly, from `at` on. */
  readonly odd: (i: number, noise: number) => number
  readonly length: number
  readonly volume?: number
}

const at = 8 * perDay + 140
const wave = (i: number) => 100 + 40 * Math.sin((2 * Math.PI * i) / perDay)
const daily = (i: number, noise: number) => wave(i) + noise
const flat = (_: number, noise: number) => 100 + noise

const textbook: Record<string, Textbook> = {
  'seasonal_band finds night values in the middle of the day': {
    choice: { method_key: 'seasonal_band', params: methodParams.seasonal_band.parse({}) },
    usual: (i, noise) => wave(i + 70) + noise,
    odd: (i, noise) => wave(i + 70 + 144) + noise,
    length: 12,
  },
  'record_range finds a value higher than any before': {
    choice: { method_key: 'record_range', params: methodParams.record_range.parse({}) },
    usual: daily,
    odd: (_, noise) => 170 + noise,
    length: 3,
  },
  'shape_discord finds a rhythm that stops at an ordinary value': {
    choice: { method_key: 'shape_discord', params: methodParams.shape_discord.parse({}) },
    usual: (i, noise) => 100 + 20 * Math.sin((2 * Math.PI * i) / 24) + noise,
    odd: () => 105,
    length: 30,
  },
  'spectral_residual finds a spike in a rhythm': {
    choice: { method_key: 'spectral_residual', params: methodParams.spectral_residual.parse({}) },
    usual: daily,
    odd: (i) => wave(i) + 60,
    length: 2,
  },
  'sub_pca finds a rhythm that stops at an ordinary value': {
    choice: { method_key: 'sub_pca', params: methodParams.sub_pca.parse({}) },
    usual: (i, noise) => 100 + 20 * Math.sin((2 * Math.PI * i) / 24) + noise,
    odd: () => 105,
    length: 30,
  },
  'level_shift finds a small step that lasts': {
    choice: { method_key: 'level_shift', params: methodParams.level_shift.parse({ min_run: 20 }) },
    usual: flat,
    odd: (_, noise) => 102.5 + noise,
    length: 40,
  },
  'absence finds a value that does not change': {
    choice: { method_key: 'absence', params: methodParams.absence.parse({}) },
    usual: flat,
    odd: () => 100,
    length: 80,
  },
  'absence finds a heartbeat that stops': {
    choice: { method_key: 'absence', params: methodParams.absence.parse({}) },
    usual: flat,
    odd: () => Number.NaN,
    length: 6,
  },
  'rate_test finds too many errors for the traffic': {
    choice: { method_key: 'rate_test', params: methodParams.rate_test.parse({}) },
    usual: (_, noise) => Math.max(0, 0.01 + 0.001 * noise),
    odd: () => 0.04,
    length: 6,
    volume: 10_000,
  },
  'rcf finds a burst between two usual values': {
    choice: { method_key: 'rcf', params: methodParams.rcf.parse({}) },
    usual: daily,
    odd: (i, noise) => wave(i) + (i % 2 === 0 ? 30 : -30) + noise,
    length: 8,
  },
  'auto finds a dip at the wrong time, within the known range': {
    choice: { method_key: 'auto', params: methodParams.auto.parse({}) },
    usual: (i, noise) => wave(i + 70) + noise,
    odd: (i, noise) => wave(i + 70 + 144) + noise,
    length: 12,
  },
  'auto finds a spike': {
    choice: { method_key: 'auto', params: methodParams.auto.parse({}) },
    usual: daily,
    odd: (i) => wave(i) + 60,
    length: 2,
  },
}

function seriesOf(book: Textbook, isOdd: boolean): Series {
  const next = seededNormal(17)
  const values = Float64Array.from({ length: days * perDay }, (_, i) => {
    const noise = next()
    return isOdd && i >= at && i < at + book.length ? book.odd(i, noise) : book.usual(i, noise)
  })
  const volumes = book.volume ? new Float64Array(values.length).fill(book.volume) : null
  return { startNs, stepMinutes, values, unknown: new Uint8Array(values.length), volumes }
}

const bucketNs = (i: number) => startNs + BigInt(i * stepMinutes) * 60_000_000_000n

for (const [name, book] of Object.entries(textbook)) {
  const openings = (series: Series) =>
    evaluateSeries(series, book.choice).episodes.map((each) => each.openedIndex)

  test(name, () => {
    const isInside = (opened: number) => opened >= at && opened < at + book.length
    const found = openings(seriesOf(book, true))
    assert.ok(found.some(isInside), `opened at ${found} and not from ${at} on`)
    const others = openings(seriesOf(book, false))
    assert.ok(!others.some(isInside), 'the same buckets raise nothing when they are as usual')
    assert.ok(others.length <= 6, `${others.length} false alarms in ten days`)
  })

  test(`${name}, and keeps no trace of it once it is erased`, () => {
    const range = { startNs: bucketNs(at), endNs: bucketNs(at + book.length) }
    const erased = [true, false].map((isOdd) =>
      evaluateSeries(eraseFrom(seriesOf(book, isOdd), [range]), book.choice),
    )
    assert.deepEqual(erased[0], erased[1])
  })
}

test('rate_test ignores two errors of three requests and finds the same share of many requests', () => {
  const choice = textbook['rate_test finds too many errors for the traffic']?.choice
  assert.ok(choice)
  const episodesAt = (volume: number) => {
    const values = new Float64Array(600).fill(0.01).fill(0.66, 590)
    const volumes = new Float64Array(600).fill(1000).fill(volume, 590)
    const unknown = new Uint8Array(600)
    return evaluateSeries({ startNs, stepMinutes, values, unknown, volumes }, choice).episodes.length
  }
  assert.equal(episodesAt(1), 0)
  assert.equal(episodesAt(3000), 1)
})

// Incidents that a person sees at once in four weeks of traffic: 400 requests at noon of a workday, 300 at
// noon of a weekend and 100 at night, so that no value of the first three incidents is unusual by itself.
const trafficDays = 28
const wednesday = 23 * perDay
const hour = perDay / 24
const traffic = (i: number) => {
  const isWeekend = Math.floor(i / perDay) % 7 >= 5
  return 100 + (isWeekend ? 200 : 300) * Math.max(0, Math.sin(Math.PI * ((i % perDay) / hour / 12 - 0.5)))
}

interface Incident {
  readonly from: number
  /** It must be reported within this many buckets. */
  readonly within: number
  readonly odd: (i: number) => number
}

const incidents: Record<string, Incident> = {
  'a workday that stays at the level of the night': {
    from: wednesday + 6 * hour,
    within: 6 * hour,
    odd: () => 100,
  },
  'twice the traffic in the night': {
    from: wednesday + hour,
    within: hour,
    odd: () => 200,
  },
  'half of the traffic gone at noon': {
    from: wednesday + 12 * hour,
    within: hour,
    odd: (i) => traffic(i) / 2,
  },
  'a leak before it has half of the height of a day': {
    from: wednesday,
    within: 12 * hour,
    odd: (i) => traffic(i) + (300 * (i - wednesday)) / perDay,
  },
}

for (const [name, { from, odd, within }] of Object.entries(incidents)) {
  test(`auto finds ${name}, and nothing on an ordinary day`, () => {
    const choice = textbook['auto finds a spike']?.choice
    assert.ok(choice)
    const openings = [odd, traffic].map((valueAt) => {
      const next = seededNormal(23)
      const values = Float64Array.from({ length: trafficDays * perDay }, (_, i) => {
        const level = i >= from && i < wednesday + perDay ? valueAt(i) : traffic(i)
        return Math.round(level * (1 + 0.05 * next()))
      })
      const series = { startNs, stepMinutes, values, unknown: new Uint8Array(values.length), volumes: null }
      const { episodes } = evaluateSeries(series, choice)
      return episodes.map(({ openedIndex }) => openedIndex).filter((i) => i >= from && i < from + within)
    })
    const [found = [], usual = []] = openings
    assert.ok(found.length > 0, `nothing reported within ${within} buckets`)
    assert.deepEqual(usual, [])
  })
}
