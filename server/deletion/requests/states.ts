// The states of a deletion request: which event leads to which state, what each state means to readers and
// writers, and the limits of retries and waiting. SPEC.md has the same in words and tables, and tests compare
// the two. Pure.

import {
  type DeletionStatus,
  deletionStatuses,
  finalDeletionStatuses,
} from '../../../contract/deletion/requests.ts'

export const deletionEvents = [
  'approve',
  'reject',
  'expire',
  'cancel',
  'hold',
  'release',
  'start',
  'ask_approval',
  'withdraw',
  'interrupt',
  'removed',
  'verified',
  'left_over',
  'give_up',
  'reapply',
] as const
export type DeletionEvent = (typeof deletionEvents)[number]

/** The state that each event leads to from each state; null where the event is refused. */
export const transitions = {
  awaiting_approval: row({
    approve: 'scheduled',
    reject: 'rejected',
    expire: 'expired',
    cancel: 'cancelled',
    reapply: 'running',
  }),
  scheduled: row({
    cancel: 'cancelled',
    start: 'running',
    withdraw: 'cancelled',
    verified: 'completed',
    reapply: 'running',
  }),
  held: row({ cancel: 'cancelled', release: 'running', withdraw: 'cancelled', reapply: 'running' }),
  running: row({
    hold: 'held',
    ask_approval: 'awaiting_approval',
    withdraw: 'cancelled',
    removed: 'verifying',
    interrupt: 'incomplete',
    verified: 'completed',
    give_up: 'failed',
    reapply: 'running',
  }),
  verifying: row({
    hold: 'held',
    verified: 'completed',
    left_over: 'incomplete',
    interrupt: 'incomplete',
    give_up: 'failed',
  }),
  incomplete: row({ start: 'running', verified: 'completed', give_up: 'failed' }),
  failed: row({ start: 'running', verified: 'completed' }),
  completed: row({ reapply: 'running' }),
  cancelled: row({ reapply: 'running' }),
  rejected: row({ reapply: 'running' }),
  expired: row({ reapply: 'running' }),
} as const satisfies Record<DeletionStatus, Record<DeletionEvent, DeletionStatus | null>>

function row(
  moves: Partial<Record<DeletionEvent, DeletionStatus>>,
): Record<DeletionEvent, DeletionStatus | null> {
  const cells = deletionEvents.map((event) => [event, moves[event] ?? null] as const)
  return Object.fromEntries(cells) as Record<DeletionEvent, DeletionStatus | null>
}

/** States in which the worker acts on the request. */
export const workingStatuses = [
  'running',
  'verifying',
  'incomplete',
] as const satisfies readonly DeletionStatus[]

/**
 * What readers and writers may do with the selection of a request; visibility.ts says what each state means
 * and how it changes.
 */
export type VisibilityState = 'open' | 'hidden' | 'fenced' | 'erased'

/**
 * The visibility of each status. Waiting for a second person hides nothing, because hiding would be the act
 * of one person. While a request only waits, telemetry is accepted and waits with the rest: refusing it for
 * days would lose it, and a cancelled request gives it back.
 */
export const visibilityOf = {
  awaiting_approval: 'open',
  scheduled: 'hidden',
  held: 'hidden',
  running: 'fenced',
  verifying: 'fenced',
  incomplete: 'fenced',
  failed: 'fenced',
  completed: 'erased',
  cancelled: 'open',
  rejected: 'open',
  expired: 'open',
} as const satisfies Record<DeletionStatus, VisibilityState>

/** Statuses in which no reader sees the selection. */
export const hidingStatuses: readonly DeletionStatus[] = deletionStatuses.filter(
  (status) => visibilityOf[status] === 'hidden' || visibilityOf[status] === 'fenced',
)

/** Statuses of a request that isn't finished, or that still hides its selection. */
export const openStatuses: readonly DeletionStatus[] = ['awaiting_approval', ...hidingStatuses]

export function isFinal(status: DeletionStatus): boolean {
  return finalDeletionStatuses.some((final) => final === status)
}

/**
 * Whether an attempt was ever made, also before a restore. A part may be erased then, so the request can't be
 * cancelled. Attempts are counted before they act, and the restore guard counts those that only the journal
 * knows.
 */
export function hasBegun({ attempts }: { readonly attempts: number }): boolean {
  return attempts > 0
}

/**
 * The most requests of an organisation's people that may be open at once: each that hides adds a condition to
 * every read of the organisation, and one that waits for approval may begin to hide at any time.
 */
export const openRequestsMax = 40

/**
 * The most of one person. A request may wait for an approval, a date or the release of a hold for weeks, so
 * one person could otherwise keep all others from erasing.
 */
export const openOfPersonMax = openRequestsMax / 2

/** How often the process may end during attempts of a request before the request fails. */
export const crashesMax = 3

/** How many attempts may fail with an error before the request fails. */
export const attemptsMax = 10

/** How long a request waits for approval before it expires, milliseconds. */
export const approvalWaitMs = 30 * 86_400_000
