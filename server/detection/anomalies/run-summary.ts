// The status and the note of a run, computed from the states of its series. The status is the most important
// one of all series; the note counts the others. Neither contains telemetry (no names of services, no
// values), but both are derived from it, so an erasure clears them until the next run.

import type { DetectorStatus } from '../../../contract/detection/detectors.ts'
import type { DetectorState } from '../alarms/alarm.ts'
import { groupBytesMax } from './findings.ts'
import { formatMinutes } from './format.ts'

/**
 * From most to least important. First come states that need attention; `degraded` is among them, because
 * series that were not evaluated may need it too. Then comes whether the detector works for at least one
 * series: a service without traffic must not hide that the others are watched.
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

/** Statuses of runs that judged nothing, for lack of data or because of an error. */
export const unjudgedStatuses = [
  'error',
  'no_data',
  'insufficient_data',
  'learning',
] as const satisfies readonly DetectorStatus[]

/** The state of one series after a run. */
export type SeriesState = DetectorState & {
  /** The active mute. */
  readonly muteId?: string
  /** Whether feedback moved one of its edges. */
  readonly isWidened?: boolean
}

export interface RunSummary {
  readonly status: DetectorStatus
  /** Null where the status needs no explanation. */
  readonly note: string | null
}

/** What a run does not judge, or not record of what it found. */
interface Unrecorded {
  /** How many series were not evaluated because their labels are too long. */
  readonly longGroups?: number
  /** How many episodes were not reported. */
  readonly leftOut?: number
  /** Whether its anomalies are without what was learnt (read-time.ts). */
  readonly isTooDivided?: boolean
}

/**
 * `truncated`: how many series were not evaluated because there are too many. Without any series the status
 * is `no_data`.
 */
export function summariseRun(
  states: readonly SeriesState[],
  truncated: number,
  stepMinutes: number,
  { isTooDivided = false, leftOut = 0, longGroups = 0 }: Unrecorded = {},
): RunSummary {
  const present = new Set<DetectorStatus>(states.map((state) => state.status))
  const unevaluated = truncated + longGroups
  if (unevaluated > 0) present.add('degraded')
  const status = order.find((candidate) => present.has(candidate)) ?? 'no_data'
  const notes = [
    ...(unevaluated > 0
      ? [`Only ${states.length} of ${states.length + unevaluated} series were evaluated.`]
      : []),
    ...(longGroups > 0
      ? [`The labels of ${longGroups} series are longer than ${groupBytesMax} bytes; group by others.`]
      : []),
    ...(leftOut > 0
      ? [`It found more anomalies than are kept: the oldest ${leftOut} of its window are left out.`]
      : []),
    ...(isTooDivided
      ? [
          'Its past was erased in too many places, so that its anomalies have no expected value and no reason.',
        ]
      : []),
    ...progressNotes(status, states, stepMinutes),
    ...muteNotes(status, states),
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
    return [`Too few series to compare: ${peersNeeded} more series of the group need data at the same time.`]
  }
  if (status === 'insufficient_data') {
    return [
      `Data is too sparse for buckets of ${formatMinutes(stepMinutes)}: the window never contains enough. Make the window or the schedule longer.`,
    ]
  }
  return []
}

function muteNotes(status: DetectorStatus, states: readonly SeriesState[]): string[] {
  const mutes = new Set(states.flatMap(({ muteId }) => (muteId === undefined ? [] : [muteId])))
  const widened = states.filter(({ isWidened }) => isWidened === true).length
  return [
    ...(mutes.size > 0 ? [`Muted by ${[...mutes].sort().join(', ')}.`] : []),
    ...(status === 'muted' && mutes.size === 0
      ? ['Its violations are muted, or are not clearly worse than its last alarm during the cool-down.']
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
