// What a run says about its detector as a whole, from what it found in each series. One word and one sentence: the
// word is the most telling of all series, the sentence counts the others. Neither quotes telemetry (no names of
// services, no values). They are derived from it all the same, so an erasure forgets them until the next run.

import type { DetectorStatus } from '../../../contract/detection.ts'
import type { DetectorState } from '../alarms/alarm.ts'
import { formatMinutes } from './reason.ts'

/**
 * From most to least telling. First what needs somebody's eyes; `degraded`, because what was not looked at may need
 * them too; then whether the detector works for at least one series: a service that went to sleep must not hide
 * that the others are watched.
 */
const order = [
  'anomalous',
  'recovering',
  'degraded',
  'muted',
  'ok',
  'learning',
  'insufficient_data',
  'no_data',
] as const satisfies readonly DetectorStatus[]

/** Statuses of runs that could judge nothing, for want of data or of luck. */
export const blindStatuses = [
  'error',
  'no_data',
  'insufficient_data',
  'learning',
] as const satisfies readonly DetectorStatus[]

/** What a run says of one series. */
export type SeriesState = DetectorState & {
  /** The mute in force. */
  readonly muteId?: string
  /** Whether feedback moved an edge of it. */
  readonly isWidened?: boolean
}

export interface RunSummary {
  readonly status: DetectorStatus
  /** Null where the status says it all. */
  readonly note: string | null
}

/** `truncated` counts the series that were not evaluated. Without any series the status is `no_data`. */
export function summariseRun(
  states: readonly SeriesState[],
  truncated: number,
  stepMinutes: number,
): RunSummary {
  const present = new Set<DetectorStatus>(states.map((state) => state.status))
  if (truncated > 0) present.add('degraded')
  const status = order.find((candidate) => present.has(candidate)) ?? 'no_data'
  const notes = [
    ...(truncated > 0
      ? [`Only ${states.length} of ${states.length + truncated} series were evaluated.`]
      : []),
    ...progressNotes(status, states, stepMinutes),
    ...quietNotes(status, states),
    ...(states.length > 1 ? [countsNote(states)] : []),
  ]
  return { status, note: notes.length === 0 ? null : notes.join(' ') }
}

function progressNotes(
  status: DetectorStatus,
  states: readonly SeriesState[],
  stepMinutes: number,
): string[] {
  const needed = states.flatMap((state) => ('pointsNeeded' in state ? [state.pointsNeeded] : []))
  const fewest = Math.min(...needed)
  if (status === 'learning') {
    return [`It needs ${fewest} more buckets with data, about ${formatMinutes(fewest * stepMinutes)}.`]
  }
  const peersNeeded = Math.min(
    ...states.flatMap((state) => ('peersNeeded' in state ? [state.peersNeeded] : [])),
  )
  if (status === 'insufficient_data' && Number.isFinite(peersNeeded)) {
    return [
      `There is too little to compare with: ${peersNeeded} more series of the group would need data at the same time.`,
    ]
  }
  if (status === 'insufficient_data') {
    return [
      `Data is too sparse for buckets of ${formatMinutes(stepMinutes)}: the window never holds enough. Make the window or the schedule longer.`,
    ]
  }
  return []
}

function quietNotes(status: DetectorStatus, states: readonly SeriesState[]): string[] {
  const mutes = new Set(states.flatMap(({ muteId }) => (muteId === undefined ? [] : [muteId])))
  const widened = states.filter(({ isWidened }) => isWidened === true).length
  return [
    ...(mutes.size > 0 ? [`Muted by ${[...mutes].sort().join(', ')}.`] : []),
    ...(status === 'muted' && mutes.size === 0
      ? ['What it saw was muted, or is no worse than what it has just told of.']
      : []),
    ...(widened > 0 ? [`By feedback the edge of ${widened} of ${states.length} series is wider.`] : []),
  ]
}

function countsNote(states: readonly SeriesState[]): string {
  const counts = order
    .map((status) => ({ status, count: states.filter((state) => state.status === status).length }))
    .filter(({ count }) => count > 0)
  return `Series: ${counts.map(({ status, count }) => `${count} ${status}`).join(', ')}.`
}
