// The time range of reading pages: `from` and `to` of the address, absolute or relative to now. A relative
// one stays relative in links.

import { nowMs } from '../clock.ts'
import type { AddressState } from './address.ts'

interface Range {
  /** As in the address. */
  readonly from: string
  readonly to: string
}

interface Preset extends Range {
  readonly label: string
}

export const presets: readonly Preset[] = [
  { label: 'last 24 hours', from: 'now-24h', to: 'now' },
  { label: 'last 7 days', from: 'now-7d', to: 'now' },
  { label: 'last 30 days', from: 'now-30d', to: 'now' },
  { label: 'last 90 days', from: 'now-90d', to: 'now' },
  { label: 'last 365 days', from: 'now-365d', to: 'now' },
]

/** The range of the address; the last 30 days where it has none. */
export function rangeOf({ from, to }: AddressState): Range {
  return { from: from ?? 'now-30d', to: to ?? 'now' }
}

const unitMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** Returns the instant in milliseconds; now where the text has no meaning. */
export function boundMs(text: string): number {
  const relative = /^now(?:-(\d{1,6})([mhdw]))?$/.exec(text)
  if (relative !== null) return nowMs() - Number(relative[1] ?? 0) * (unitMs[relative[2] ?? 'm'] ?? 0)
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? nowMs() : ms
}

/** Moves both bounds by the length of the range; the result is absolute. */
export function shifted(range: Range, steps: number): Range {
  const [startMs, endMs] = [boundMs(range.from), boundMs(range.to)]
  const byMs = (endMs - startMs) * steps
  return absolute(startMs + byMs, endMs + byMs)
}

/** Doubles the range around its middle. */
export function zoomedOut(range: Range): Range {
  const [startMs, endMs] = [boundMs(range.from), boundMs(range.to)]
  const halfMs = (endMs - startMs) / 2
  return absolute(startMs - halfMs, endMs + halfMs)
}

function absolute(startMs: number, endMs: number): Range {
  return { from: new Date(startMs).toISOString(), to: new Date(endMs).toISOString() }
}
