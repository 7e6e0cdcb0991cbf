// A run reports every open episode, and of those that ended the newest of all its series.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nsPerMinute } from '../../../contract/values/instant.ts'
import type { Episode } from './episode.ts'
import { NewestEnds, newestCounts, newestEpisodes, reportedMax } from './newest-episodes.ts'

const episode = (startIndex: number, lastIndex: number, isOpen = false): Episode => ({
  kind: 'high',
  ...{ startIndex, openedIndex: startIndex, lastIndex, peakIndex: lastIndex },
  endIndex: isOpen ? null : lastIndex,
  ...{ peakValue: 1, expected: null, lower: null, upper: 0, score: 2 },
})

const seriesFrom = (startMinute: number, episodes: readonly Episode[], stepMinutes = 1) => ({
  series: { startNs: BigInt(startMinute) * nsPerMinute, stepMinutes },
  episodes,
})

const lasts = (kept: readonly (readonly Episode[])[]) =>
  kept.map((each) => each.map(({ lastIndex }) => lastIndex))

test('a thousand ended episodes are reported at most, and all where there are no more', () => {
  const all = Array.from({ length: reportedMax + 1 }, (_, i) => episode(2 * i, 2 * i))
  const exactly = seriesFrom(0, all.slice(1))
  assert.deepEqual(newestEpisodes([exactly])[0], exactly.episodes)
  assert.deepEqual(newestEpisodes([seriesFrom(0, all)]), [all.slice(1)])
})

test('the newest are those of all series that were seen last, by the time and not by the bucket', () => {
  const early = seriesFrom(0, [episode(0, 1), episode(3, 4), episode(20, 21)])
  const late = seriesFrom(10, [episode(0, 1), episode(3, 4)])
  assert.deepEqual(lasts(newestEpisodes([early, late], 3)), [[21], [1, 4]])
  const hours = seriesFrom(0, [episode(0, 0), episode(2, 2)], 60)
  assert.deepEqual(lasts(newestEpisodes([hours, late], 2)), [[0, 2], []])
})

test('an episode that has just ended is reported however early it began, and an open one always', () => {
  const others = [episode(5, 6), episode(8, 9)]
  const kept = newestEpisodes([seriesFrom(0, [episode(-40, 10)]), seriesFrom(0, others)], 1)
  assert.deepEqual(lasts(kept), [[10], []])
  const open = seriesFrom(0, [episode(0, 1), episode(2, 3, true)])
  assert.deepEqual(lasts(newestEpisodes([open, seriesFrom(0, others)], 1)), [[3], [9]])
})

test('of episodes that ended together as many are reported as there is room for', () => {
  const same = [
    seriesFrom(0, [episode(1, 3)]),
    seriesFrom(0, [episode(0, 3)]),
    seriesFrom(0, [episode(2, 3)]),
  ]
  assert.deepEqual(lasts(newestEpisodes(same, 2)), [[3], [3], []])
})

/** Series whose episodes end at any time; only the last one of each may be open. */
const anySeries = fc
  .array(fc.tuple(fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 12 }), fc.boolean()), {
    maxLength: 4,
  })
  .map((all) =>
    all.map(([gaps, isOpen]) => {
      let at = 0
      const episodes = gaps.map((gap, i) => {
        at += gap
        return episode(at, at, isOpen && i === gaps.length - 1)
      })
      return seriesFrom(0, episodes)
    }),
  )

test('series that are evaluated one after another give the same newest episodes as all at once', () => {
  fc.assert(
    fc.property(anySeries, fc.integer({ min: 1, max: 9 }), (series, max) => {
      const newestEnds = new NewestEnds(max)
      const sent = series.map((each) => {
        const ended = each.episodes.filter(({ endIndex }) => endIndex !== null)
        const ends = Float64Array.from(ended, ({ lastIndex }) => lastIndex + 1)
        const [count = 0] = newestCounts([ends], newestEnds.sinceMinute, max)
        const part = { ...each, episodes: each.episodes.slice(ended.length - count) }
        newestEnds.add(part)
        return part
      })
      assert.deepEqual(newestEpisodes(sent, max), newestEpisodes(series, max))
    }),
  )
})

test('a series is not asked for episodes that are older than enough others', () => {
  const newestEnds = new NewestEnds(2)
  newestEnds.add(seriesFrom(0, [episode(4, 5)]))
  assert.equal(newestEnds.sinceMinute, Number.NEGATIVE_INFINITY)
  newestEnds.add(seriesFrom(0, [episode(0, 1), episode(7, 8), episode(9, 9, true)]))
  assert.equal(newestEnds.sinceMinute, 6)
  assert.deepEqual(newestCounts([Float64Array.of(2, 6, 7)], newestEnds.sinceMinute, 9), [2])
})

test('whatever the series are, exactly the number is kept, in order, and nothing newer than the oldest is left out', () => {
  fc.assert(
    fc.property(anySeries, fc.integer({ min: 1, max: 9 }), (series, max) => {
      const kept = newestEpisodes(series, max)
      const isEnded = ({ endIndex }: Episode) => endIndex !== null
      const ended = series.flatMap(({ episodes }) => episodes.filter(isEnded))
      const keptEnded = kept.flat().filter(isEnded)
      assert.equal(keptEnded.length, Math.min(max, ended.length))
      const oldest = Math.min(...keptEnded.map(({ lastIndex }) => lastIndex))
      for (const each of ended) assert(each.lastIndex <= oldest || keptEnded.includes(each))
      for (const [i, { episodes }] of series.entries()) {
        assert.deepEqual(
          kept[i],
          episodes.filter((each) => !isEnded(each) || keptEnded.includes(each)),
        )
      }
    }),
  )
})
