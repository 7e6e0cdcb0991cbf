// For tests: a mute of one hour.

import type { MuteRule } from './mute.ts'

const hourNs = 3_600_000_000_000n
const noonNs = BigInt(Date.parse('2026-09-11T12:00:00Z')) * 1_000_000n

/** From noon to one o'clock UTC on 2026-09-11, of every series. */
export function muteOf(more: Partial<MuteRule> = {}): MuteRule {
  return { id: 'mut_1', group: null, fromNs: noonNs, untilNs: noonNs + hourNs, weekly: null, ...more }
}
