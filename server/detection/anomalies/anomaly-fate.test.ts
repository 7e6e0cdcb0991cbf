// What an erasure does to an anomaly, compared with a loop over single instants: an instant is erased when it
// is in the range and under no legal hold, and it was learnt from when the run read it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { allTime, overlaps, type TimeRange, without } from '../../core/time-range.ts'
import { signals as allSignals } from '../../telemetry/schema/tables.ts'
import { type AnomalySource, type Erasure, fateOf, KeepingHolds } from './anomaly-fate.ts'

const range = (startNs: number | null, endNs: number | null): TimeRange => ({
  startNs: startNs === null ? null : BigInt(startNs),
  endNs: endNs === null ? null : BigInt(endNs),
})
/** Learnt from 10 to 60; its own time is 50 to 60. */
const anomaly: AnomalySource = {
  signals: ['traces'],
  startedNs: 50n,
  seenUntilNs: 60n,
  read: [range(10, 60)],
}
const erase = (erased: TimeRange, more: Partial<Erasure> = {}): Erasure => ({
  signals: ['traces'],
  range: erased,
  held: [],
  ...more,
})

test('erasing its own time removes an anomaly, and erasing what it learnt from redacts it, exact to the nanosecond', () => {
  const fates = [
    [range(null, 10), 'kept'],
    [range(null, 11), 'redacted'],
    [range(49, 50), 'redacted'],
    [range(49, 51), 'removed'],
    [range(59, null), 'removed'],
    [range(60, null), 'kept'],
    [allTime, 'removed'],
  ] as const
  for (const [erased, fate] of fates) assert.equal(fateOf(anomaly, erase(erased)), fate, String(erased.endNs))
})

test('time that was erased when the run read, or an anomaly that is redacted already, is not redacted again', () => {
  const withHole = { ...anomaly, read: [range(10, 20), range(30, 60)] }
  assert.equal(fateOf(withHole, erase(range(20, 30))), 'kept')
  assert.equal(fateOf(withHole, erase(range(19, 30))), 'redacted')
  assert.equal(fateOf({ ...anomaly, read: [] }, erase(range(20, 30))), 'kept')
  assert.equal(fateOf({ ...anomaly, read: [] }, erase(range(20, 51))), 'removed')
})

test('an erasure of other signals does not affect the anomaly', () => {
  assert.equal(fateOf(anomaly, erase(allTime, { signals: ['metrics', 'logs'] })), 'kept')
  assert.equal(fateOf({ ...anomaly, signals: ['logs', 'traces'] }, erase(allTime)), 'removed')
})

test('an anomaly about held time is kept, and held time that it learnt from is not erased', () => {
  const held = (part: TimeRange, signal: 'logs' | 'traces' = 'traces') => ({
    held: [{ signals: [signal], range: part }],
  })
  assert.equal(fateOf(anomaly, erase(allTime, held(range(59, 60)))), 'kept')
  assert.equal(fateOf(anomaly, erase(allTime, held(range(60, 61)))), 'removed')
  assert.equal(fateOf(anomaly, erase(allTime, held(range(59, 60), 'logs'))), 'removed')
  const two = { ...anomaly, signals: ['logs', 'traces'] } as const
  assert.equal(fateOf(two, erase(allTime, held(range(59, 60), 'logs'))), 'kept', 'one held signal is enough')
  assert.equal(fateOf(anomaly, erase(range(20, 30), held(range(20, 30)))), 'kept')
  assert.equal(fateOf(anomaly, erase(range(20, 30), held(range(20, 29)))), 'redacted')
  assert.equal(
    fateOf(two, erase(range(20, 30), held(range(20, 30), 'logs'))),
    'redacted',
    'because of its other signal',
  )
})

const small = fc.integer({ min: 0, max: 12 })
const bound = fc.option(small, { nil: null })
const ranges = fc
  .tuple(bound, bound)
  .filter(([from, to]) => from === null || to === null || from < to)
  .map(([from, to]) => range(from, to))
const someSignals = fc.subarray([...allSignals], { minLength: 1 })
const erasures = fc.record({
  signals: someSignals,
  range: ranges,
  held: fc.array(fc.record({ signals: someSignals, range: ranges }), { maxLength: 3 }),
})
const anomalies = fc
  .record({
    signals: someSignals,
    readFrom: fc.integer({ min: 0, max: 6 }),
    started: fc.integer({ min: 6, max: 8 }),
    seenUntil: fc.integer({ min: 9, max: 11 }),
    holes: fc.array(ranges, { maxLength: 2 }),
  })
  .map(({ signals, readFrom, started, seenUntil, holes }): AnomalySource => {
    const own = range(started, seenUntil)
    return {
      signals,
      startedNs: BigInt(started),
      seenUntilNs: BigInt(seenUntil),
      read: without(
        range(readFrom, seenUntil),
        holes.filter((hole) => !overlaps(hole, own)),
      ),
    }
  })

test('whatever is erased and held, the result for an anomaly is that of a loop over its instants', () => {
  fc.assert(
    fc.property(anomalies, erasures, (source, erasure) => {
      const instants = Array.from({ length: 14 }, (_, i) => BigInt(i))
      const isIn = (part: TimeRange, ns: bigint) => overlaps(part, { startNs: ns, endNs: ns + 1n })
      const isHeld = (signal: string, ns: bigint) =>
        erasure.held.some((part) => part.signals.some((held) => held === signal) && isIn(part.range, ns))
      const own = instants.filter((ns) => ns >= source.startedNs && ns < source.seenUntilNs)
      const isEvidence = source.signals.some((signal) => own.some((ns) => isHeld(signal, ns)))
      const lost = source.signals
        .filter((signal) => erasure.signals.includes(signal))
        .flatMap((signal) => instants.filter((ns) => isIn(erasure.range, ns) && !isHeld(signal, ns)))
      const isAbout = lost.some((ns) => own.includes(ns))
      const isLearnt = lost.some((ns) => source.read.some((stretch) => isIn(stretch, ns)))
      const fate = isEvidence ? 'kept' : isAbout ? 'removed' : isLearnt ? 'redacted' : 'kept'
      assert.equal(fateOf(source, erasure), fate)
    }),
    { numRuns: 2000 },
  )
})

/** The holds that keep the anomaly, in their order. */
function keepersOf(anomaly: AnomalySource, erasure: Erasure, held: Erasure['held']): Erasure['held'] {
  const keeping = new KeepingHolds(erasure, held)
  keeping.add(anomaly)
  return held.filter((hold) => keeping.found.has(hold))
}

test('while the holds that keep an anomaly are in force nothing of it is erased, whichever others are released', () => {
  fc.assert(
    fc.property(anomalies, erasures, fc.array(fc.boolean()), (source, erasure, released) => {
      const fateUnder = (held: Erasure['held']) => fateOf(source, { ...erasure, held })
      const keepers = keepersOf(source, erasure, erasure.held)
      const isKept = fateUnder([]) !== 'kept' && fateUnder(erasure.held) === 'kept'
      assert.equal(keepers.length > 0, isKept)
      const left = erasure.held.filter((hold, i) => keepers.includes(hold) || released[i] !== true)
      if (isKept) assert.equal(fateUnder(left), 'kept')
    }),
    { numRuns: 2000 },
  )
})

test('the holds that keep several anomalies are those that keep each', () => {
  fc.assert(
    fc.property(fc.array(anomalies, { maxLength: 5 }), erasures, (sources, erasure) => {
      const keeping = new KeepingHolds(erasure, erasure.held)
      for (const source of sources) keeping.add(source)
      assert.deepEqual(
        erasure.held.filter((hold) => keeping.found.has(hold)),
        erasure.held.filter((hold) =>
          sources.some((source) => keepersOf(source, erasure, erasure.held).includes(hold)),
        ),
      )
    }),
    { numRuns: 2000 },
  )
})

test('holds about an anomaly keep it, and of others only those of erased time that it learnt from', () => {
  const hold = (part: TimeRange, signal: 'logs' | 'traces' = 'traces') => ({ signals: [signal], range: part })
  const [about, first, second] = [hold(range(59, 70)), hold(range(20, 25)), hold(range(25, 30))]
  const unread = hold(range(0, 10))
  const keepers = (erased: TimeRange, held: Erasure['held']) => keepersOf(anomaly, erase(erased), held)
  assert.deepEqual(keepers(range(null, 55), [first, about, unread]), [about])
  assert.deepEqual(keepers(range(20, 30), [first, about]), [about])
  assert.deepEqual(keepers(range(20, 30), [first, second, hold(range(30, 40))]), [first, second])
  assert.deepEqual(keepers(range(0, 30), [unread, hold(range(10, 30))]), [hold(range(10, 30))])
  assert.deepEqual(keepers(range(20, 30), [first]), [], 'the rest of that time is erased')
  assert.deepEqual(keepers(range(20, 30), [hold(range(20, 30), 'logs')]), [])
  assert.deepEqual(keepers(range(60, 70), [about]), [], 'the erasure does not affect it')
})
