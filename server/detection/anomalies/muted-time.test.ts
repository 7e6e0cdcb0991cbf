// The time in which a series is muted is that of comparing each bucket with each mute, whatever the zones of
// the mutes, and costs no formatter of a time zone for each episode.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Weekly, weekdays } from '../../../contract/detection/feedback.ts'
import { nsPerMinute } from '../../../contract/values/instant.ts'
import { countFormatters } from '../../core/formatter-count-fixture.ts'
import { Pace } from '../../core/turns/pace.ts'
import { type MuteRule, muteAt } from './mute.ts'
import { muteOf } from './mute-fixture.ts'
import { type EndedBuckets, MutedTime } from './muted-time.ts'

const minuteOf = (text: string) => Date.parse(text) / 60_000
const ns = (text: string) => BigInt(minuteOf(text)) * nsPerMinute

const timeOf = (mutes: readonly MuteRule[], buckets: EndedBuckets) => {
  const { firstEnd, lastEnd } = buckets
  return MutedTime.of(mutes, { from: firstEnd, until: Math.max(firstEnd, lastEnd) + 1 }, new Pace())
}

async function isMuted(mutes: readonly MuteRule[], buckets: EndedBuckets): Promise<boolean> {
  return (await timeOf(mutes, buckets)).of(mutes).hasAll(buckets)
}

const between = (first: string, last: string, stepMinutes = 1) => ({
  firstEnd: minuteOf(first),
  lastEnd: minuteOf(last),
  stepMinutes,
})

test('an episode is muted only where every bucket since its alarm is', async () => {
  const from = '2026-09-11T12:10:00Z'
  const until = '2026-09-11T12:20:00Z'
  assert(await isMuted([muteOf()], between(from, until)))
  assert(!(await isMuted([muteOf()], between(from, '2026-09-11T13:01:00Z'))))
  assert(await isMuted([muteOf()], between(from, '2026-09-11T13:00:00Z')), 'the bucket that ends there')
  assert(
    !(await isMuted([muteOf()], between('2026-09-11T11:30:00Z', until))),
    'the alarm was raised before the mute',
  )
  assert(!(await isMuted([], between(from, until))))
})

test('a series is muted by its own mutes only, and by several that follow each other', async () => {
  const next = muteOf({ fromNs: ns('2026-09-11T13:00:00Z'), untilNs: ns('2026-09-11T14:00:00Z') })
  const buckets = between('2026-09-11T12:30:00Z', '2026-09-11T13:30:00Z', 5)
  const time = await timeOf([muteOf(), next], buckets)
  assert(time.of([muteOf(), next]).hasAll(buckets) === false, 'these are other objects')
  const both = [muteOf(), next]
  const own = await timeOf(both, buckets)
  assert(own.of(both).hasAll(buckets))
  assert(!own.of(both.slice(0, 1)).hasAll(buckets))
})

/** Each bucket compared with each mute, by the local time that the formatter of each zone says. */
function isMutedBucketByBucket(mutes: readonly MuteRule[], buckets: EndedBuckets): boolean {
  const isMutedAt = (end: number) => {
    const instantNs = BigInt(end) * nsPerMinute - 1n
    const isActive = mutes.some(
      ({ fromNs, untilNs, weekly }) =>
        fromNs <= instantNs &&
        (untilNs === null || instantNs < untilNs) &&
        (weekly === null || isInFormatted(weekly, Number(instantNs / 1_000_000n))),
    )
    assert.equal(muteAt(mutes, instantNs) !== null, isActive)
    return isActive
  }
  if (!isMutedAt(buckets.firstEnd)) return false
  for (let end = buckets.firstEnd; end <= buckets.lastEnd; end += buckets.stepMinutes) {
    if (!isMutedAt(end)) return false
  }
  return true
}

const formats = new Map<string, Intl.DateTimeFormat>()

function isInFormatted({ days, from, time_zone: timeZone, until }: Weekly, ms: number): boolean {
  const clock = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const
  const format =
    formats.get(timeZone) ?? new Intl.DateTimeFormat('en-GB', { timeZone, weekday: 'short', ...clock })
  formats.set(timeZone, format)
  const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, value]))
  const time = `${parts.get('hour')}:${parts.get('minute')}`
  const shortDays = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']
  const today = shortDays.indexOf(parts.get('weekday') ?? '')
  const isOn = (day: number) => days.some((name) => name === weekdays[(day + 7) % 7])
  if (from < until) return isOn(today) && time >= from && time < until
  return (isOn(today) && time >= from) || (isOn(today - 1) && time < until)
}

// Half an hour of summer time, two changes in a month, quarters of an hour, a day that was left out.
const zones = [
  'Europe/Berlin',
  'America/New_York',
  'Australia/Lord_Howe',
  'Africa/Casablanca',
  'Asia/Kathmandu',
  'Pacific/Apia',
  'UTC',
]
/** Changes of the clock are near these, and each is at a Sunday or at the end of a year. */
const centres = ['2026-03-29T01:00Z', '2026-10-25T01:00Z', '2026-03-22T02:00Z', '2011-12-30T10:00Z'].map(
  minuteOf,
)

const time = fc
  .tuple(fc.nat(23), fc.constantFrom(0, 0, 1, 15, 30, 59))
  .map(([hour, minute]) => `${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`)
const weekly: fc.Arbitrary<Weekly> = fc.record({
  days: fc.uniqueArray(fc.constantFrom(...weekdays), { minLength: 1, maxLength: 7 }),
  from: time,
  until: fc.oneof(time, fc.constant('00:00')),
  time_zone: fc.constantFrom(...zones),
})

test('whatever the mutes and the buckets are, the result is that of comparing each bucket with each mute', async () => {
  const around = fc.integer({ min: -4000, max: 4000 })
  const rule = fc.record({
    span: fc.option(fc.tuple(around, fc.integer({ min: 1, max: 8000 }), fc.constantFrom(0n, 1n, -1n)), {
      freq: 2,
    }),
    weekly: fc.option(weekly, { freq: 4 }),
  })
  const buckets = fc.tuple(around, fc.integer({ min: -3, max: 200 }), fc.constantFrom(1, 5, 15, 60))
  const seen = { muted: 0, not: 0 }
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...centres),
      fc.array(rule, { maxLength: 6 }),
      buckets,
      async (centre, rules, [first, count, stepMinutes]) => {
        const mutes = rules.map(({ span, weekly }, i) => {
          const [from, minutes, aside] = span ?? [-5000, null, 0n]
          const fromNs = BigInt(centre + from) * nsPerMinute + aside
          const untilNs = minutes === null ? null : fromNs + BigInt(minutes) * nsPerMinute
          return muteOf({ id: `mut_${i}`, fromNs, untilNs, weekly })
        })
        const firstEnd = centre + first
        const asked = { firstEnd, lastEnd: firstEnd + count * stepMinutes, stepMinutes }
        const expected = isMutedBucketByBucket(mutes, asked)
        seen[expected ? 'muted' : 'not']++
        assert.equal(await isMuted(mutes, asked), expected)
        // The time of a whole run has the same result as that of the episode alone.
        const range = { from: centre - 20_000, until: centre + 20_000 }
        assert.equal((await MutedTime.of(mutes, range, new Pace())).of(mutes).hasAll(asked), expected)
      },
    ),
    { numRuns: 400 },
  )
  assert(seen.muted > 20 && seen.not > 20, 'both occur')
})

test('two hundred mutes in as many zones need a formatter each once, however often they are asked', async () => {
  const names = Intl.supportedValuesOf('timeZone').slice(0, 200)
  assert.equal(names.length, 200)
  const nights = names.map((time_zone, i) =>
    muteOf({
      id: `mut_${i}`,
      fromNs: ns('2027-01-01T00:00Z'),
      untilNs: null,
      weekly: { days: [...weekdays], from: '22:00', until: '06:00', time_zone },
    }),
  )
  const day = between('2027-03-10T00:00Z', '2027-03-11T00:00Z')
  const instants = Array.from(
    { length: 20 },
    (_, hour) => ns('2027-03-10T00:00Z') + BigInt(60 * hour) * nsPerMinute,
  )
  const made = await countFormatters(async () => {
    for (let run = 0; run < 3; run++) {
      await isMuted(nights, day)
      for (const instant of instants) for (const night of nights) muteAt([night], instant)
    }
  })
  assert.equal(made, 200)
})

test('other work of the event loop runs between mutes whose zones are new', async () => {
  const nights = Intl.supportedValuesOf('timeZone')
    .slice(0, 200)
    .map((time_zone) => {
      const weekly = { days: [...weekdays], from: '22:00', until: '06:00', time_zone }
      return muteOf({ fromNs: 0n, untilNs: null, weekly })
    })
  let turns = 0
  const pace = new Pace(async () => {
    turns++
  })
  const [from, until] = [minuteOf('2029-01-01T00:00Z'), minuteOf('2029-03-01T00:00Z')]
  await MutedTime.of(nights, { from, until }, pace)
  assert(turns > 3, `${turns} turns`)
})

test('a mute of other time makes no formatter', async () => {
  const never = { days: [...weekdays], from: '00:00', until: '00:00', time_zone: 'Antarctica/Troll' }
  const made = await countFormatters(async () => {
    await isMuted([muteOf({ weekly: never })], between('2026-09-12T00:00Z', '2026-09-13T00:00Z'))
  })
  assert.equal(made, 0)
})
