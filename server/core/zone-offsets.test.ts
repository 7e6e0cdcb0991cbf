// Offsets of time zones are those of the time zone database at every instant, also just beside a change.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { countFormatters } from './formatter-count-fixture.ts'
import { offsetReader, offsetStretches, zoneOffsetMs } from './zone-offsets.ts'

const minuteMs = 60_000
const changes: [string, string, number, number][] = [
  ['Europe/Berlin', '2026-03-29T01:00:00Z', 60, 120],
  ['Australia/Lord_Howe', '2026-04-04T15:00:00Z', 660, 630],
  ['Pacific/Apia', '2011-12-30T10:00:00Z', -600, 840],
  ['Africa/Monrovia', '1972-01-07T00:44:30Z', -44.5, 0],
]

test('an offset is that of the zone up to the last millisecond before a change, and from the change on', () => {
  for (const [zone, instant, before, after] of changes) {
    const ms = Date.parse(instant)
    assert.deepEqual(
      [ms - 1, ms].map((each) => zoneOffsetMs(zone, each) / minuteMs),
      [before, after],
      zone,
    )
  }
})

test('stretches cover their range without a gap, and each has one offset', () => {
  const [from, until] = [Date.parse('2026-01-07T05:00:00Z'), Date.parse('2027-01-01T00:00:00Z')]
  for (const zone of ['Africa/Casablanca', 'Europe/Berlin', 'UTC']) {
    const stretches = offsetStretches(zone, from, until)
    const [first, last] = [stretches[0], stretches.at(-1)]
    assert(first !== undefined && first.startMs <= from && last !== undefined && last.endMs >= until)
    const read = offsetReader(zone)
    for (const [i, { endMs, offsetMs, startMs }] of stretches.entries()) {
      assert.equal(stretches[i + 1]?.startMs ?? endMs, endMs)
      for (const ms of [startMs, endMs - 1]) assert.equal(read(ms), offsetMs, `${zone} ${new Date(ms)}`)
    }
    const offsets = new Set(stretches.map(({ offsetMs }) => offsetMs))
    assert.equal(offsets.size, zone === 'UTC' ? 1 : 2)
  }
})

test('at any instant of a century the offset is that of the time zone database', () => {
  const zones = [
    'Europe/Dublin',
    'America/Sao_Paulo',
    'Asia/Gaza',
    'Africa/Cairo',
    'Asia/Pyongyang',
    'America/Caracas',
  ]
  const readers = new Map(zones.map((zone) => [zone, offsetReader(zone)]))
  const instant = fc.integer({ min: Date.UTC(1970, 0), max: Date.UTC(2060, 0) })
  fc.assert(
    fc.property(fc.constantFrom(...zones), instant, (zone, ms) => {
      assert.equal(zoneOffsetMs(zone, ms), readers.get(zone)?.(ms))
    }),
    { numRuns: 300 },
  )
})

test('what was used longest ago is forgotten first, and what is used often stays', async () => {
  const used = Date.UTC(2100, 0)
  const fourWeeks = 28 * 24 * 60 * minuteMs
  const ask = async (ms: number) => zoneOffsetMs('Etc/GMT+3', ms)
  await ask(used)
  const made = await countFormatters(async () => {
    for (let i = 1; i <= 4200; i++) {
      await ask(used + i * fourWeeks)
      await ask(used)
    }
  })
  assert.equal(made, 4200, 'none for the one that was used in between')
  assert.equal(await countFormatters(() => ask(used + fourWeeks)), 1, 'their number is bounded')
})
