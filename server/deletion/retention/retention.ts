// What a retention rule erases on a day: everything of a signal before a UTC midnight, except what a legal
// hold keeps. Nothing is stored between days, so what a hold keeps today is found again after its release.
// Pure.

import { nsPerMs } from '../../../contract/values/instant.ts'
import { compareEnds, compareStarts } from '../../core/time-range.ts'
import { type Signal, signals } from '../../telemetry/schema/tables.ts'
import type { DeletionDraft } from '../requests/draft.ts'
import { type DeletionSelection, selectionText } from '../requests/selection.ts'
import type { SettledTime } from './settled-time.ts'

/** Days to keep per signal; a signal that is absent is kept without limit. */
export type RetentionRule = ReadonlyMap<Signal, number>

/** Whether keeping a signal for `days` erases more than the rule before; without a rule nothing is erased. */
export function isShorter(days: number, before: number | undefined): boolean {
  return before === undefined || days < before
}

const msPerDay = 86_400_000

/** Returns the UTC midnight `days` whole days before the current UTC day. */
export function cutOffMs(nowMs: number, days: number): number {
  return Math.floor(nowMs / msPerDay) * msPerDay - days * msPerDay
}

function cutOffNs(nowMs: number, days: number): bigint {
  return BigInt(cutOffMs(nowMs, days)) * nsPerMs
}

/** Whether the rule keeps a part of the selection at `nowMs`. */
export function keepsPart(
  rule: RetentionRule,
  { range: { endNs }, signals: selected }: DeletionSelection,
  nowMs: number,
): boolean {
  return selected.some((signal) => {
    const days = rule.get(signal)
    return days === undefined || endNs === null || endNs > cutOffNs(nowMs, days)
  })
}

/**
 * Returns what is to be erased at `nowMs` and not settled, in order of time: one draft per range, with all
 * signals that share it.
 */
export function* retentionDrafts(
  rule: RetentionRule,
  settled: SettledTime,
  nowMs: number,
): Generator<DeletionDraft, void> {
  const ofSignals = signals.flatMap((signal) => {
    const days = rule.get(signal)
    if (days === undefined) return []
    const gaps = settled.gaps(signal, cutOffNs(nowMs, days))
    return { signal, gaps, next: gaps.next() }
  })
  for (;;) {
    const left = ofSignals.flatMap((one) => (one.next.done ? [] : { one, range: one.next.value }))
    const [first] = left.toSorted(
      ({ range: a }, { range: b }) => compareStarts(a.startNs, b.startNs) || compareEnds(a.endNs, b.endNs),
    )
    if (first === undefined) return
    const { range } = first
    const same = left.filter(
      (other) => other.range.startNs === range.startNs && other.range.endNs === range.endNs,
    )
    yield {
      signals: same.map(({ one }) => one.signal),
      range,
      scope: 'range',
      reason: 'retention',
      note: null,
      delayMinutes: 0,
      refuseLate: false,
    }
    for (const { one } of same) one.next = one.gaps.next()
  }
}

/**
 * Returns the same key for the same range on the same day, so that a rule is carried out once a day, also
 * after a restart. It has a space, which no Idempotency-Key of a client may have: nobody can take it first.
 */
export function retentionKey(draft: DeletionDraft, nowMs: number): string {
  const day = new Date(cutOffMs(nowMs, 0)).toISOString().slice(0, 10)
  return `system retention|${day}|${selectionText(draft)}`
}
