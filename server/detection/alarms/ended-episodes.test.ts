// Ended episodes come back as they were added, however many were forgotten before, and a copy of the state is
// independent.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { copyState, stateBytes } from '../methods/copy-state.ts'
import { EndedEpisodes } from './ended-episodes.ts'
import type { Episode } from './episode.ts'

const numberOrNull = fc.option(fc.double({ noNaN: true }))
const anyEpisode = fc
  .record({
    gap: fc.integer({ min: 1, max: 5 }),
    length: fc.integer({ min: 0, max: 5 }),
    kind: fc.constantFrom('high', 'low', 'odd', 'silent'),
    peakValue: numberOrNull,
    expected: numberOrNull,
    lower: numberOrNull,
    upper: numberOrNull,
    score: fc.double({ min: 1, noNaN: true }),
    isCompared: fc.boolean(),
  })
  .map(({ gap, isCompared, length, ...rest }) => ({ gap, isCompared, length, rest }))

const inOrder = fc.array(anyEpisode, { maxLength: 40 }).map((drafts) => {
  let bucket = 0
  return drafts.map(({ gap, isCompared, length, rest }): Episode => {
    const startIndex = bucket + gap
    bucket = startIndex + length
    return {
      ...{ ...rest, kind: rest.kind as Episode['kind'] },
      ...{ startIndex, openedIndex: startIndex, peakIndex: startIndex, lastIndex: bucket, endIndex: bucket },
      ...(isCompared ? { compared: { with: 'season', low: 1, high: bucket } as never } : {}),
    }
  })
})

function withAll(episodes: readonly Episode[]): EndedEpisodes {
  const ended = new EndedEpisodes()
  for (const episode of episodes) ended.add(episode)
  return ended
}

test('episodes come back as they were added, the newest of those that are not forgotten', () => {
  fc.assert(
    fc.property(inOrder, fc.integer({ min: 1, max: 60 }), fc.nat(50), (episodes, window, count) => {
      const ended = new EndedEpisodes()
      for (const [i, episode] of episodes.entries()) {
        ended.add(episode)
        const from = episode.lastIndex - window
        ended.forgetBefore(from)
        const kept = episodes.slice(0, i + 1).filter(({ lastIndex }) => lastIndex >= from)
        assert.deepEqual(ended.newest(Number.POSITIVE_INFINITY), kept)
        assert.deepEqual(ended.newest(count), count === 0 ? [] : kept.slice(-count))
        const since = from + 3
        assert.deepEqual(
          [...ended.lastIndexesSince(since)],
          kept.map(({ lastIndex }) => lastIndex).filter((lastIndex) => lastIndex >= since),
        )
      }
    }),
  )
})

test('a copy keeps its episodes while the original forgets them and gets others', () => {
  fc.assert(
    fc.property(inOrder, inOrder, (before, after) => {
      const original = withAll(before)
      const copy = copyState(original)
      original.forgetBefore(Number.POSITIVE_INFINITY)
      for (const episode of after) original.add(episode)
      assert.deepEqual(copy.newest(Number.POSITIVE_INFINITY), before)
    }),
  )
})

test('memory is bounded by what is kept, and an episode takes a few hundred bytes', () => {
  const ended = new EndedEpisodes()
  const episode = { kind: 'high', peakValue: 1, expected: null, lower: null, upper: 0, score: 2 } as const
  for (let i = 0; i < 100_000; i++) {
    const at = { startIndex: i, openedIndex: i, peakIndex: i, lastIndex: i, endIndex: i }
    ended.add({ ...episode, ...at, compared: { low: i, high: i } as never })
    ended.forgetBefore(i - 999)
  }
  assert.equal(ended.newest(Number.POSITIVE_INFINITY).length, 1000)
  const bytes = stateBytes(ended)
  assert(bytes < 1000 * 300, String(bytes))
})
