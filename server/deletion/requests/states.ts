// The states of a deletion request, without I/O: which event leads where, what each state means to readers and writers, and
// the limits that move a request. SPEC.md says the same in words and tables; tests hold the two against each other.

import { type DeletionStatus, deletionStatuses, finalDeletionStatuses } from '../../../contract/deletion.ts'

export const deletionEvents = [
  'approve',
  'reject',
  'expire',
  'cancel',
  'hold',
  'release',
  'start',
  'interrupt',
  'removed',
  'verified',
  'left_over',
  'give_up',
  'reapply',
] as const
export type DeletionEvent = (typeof deletionEvents)[number]

/** Every state against every event: the state it leads to, or null where the event is refused. */
export const transitions = {
  awaiting_approval: row({
    approve: 'scheduled',
    reject: 'rejected',
    expire: 'expired',
    cancel: 'cancelled',
    reapply: 'running',
  }),
  scheduled: row({ cancel: 'cancelled', start: 'running', verified: 'completed', reapply: 'running' }),
  held: row({ cancel: 'cancelled', release: 'running', reapply: 'running' }),
  running: row({
    hold: 'held',
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

/** States from which the service moves on by itself. */
export const workingStatuses = [
  'running',
  'verifying',
  'incomplete',
] as const satisfies readonly DeletionStatus[]

/**
 * What readers and writers meet at the selection of a request; visibility.ts says what each state means and in which order
 * they change.
 */
export type VisibilityState = 'open' | 'hidden' | 'fenced' | 'erased'

/**
 * Which state of visibility each status stands for. Waiting for a second person hides nothing: that would be the act of
 * one. While a request only waits, telemetry is accepted and waits with the rest: refusing it for days would lose it, and
 * a cancelled request gives it back.
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

/** Statuses of a request that isn't finished, or that hides its selection although it is. */
export const openStatuses: readonly DeletionStatus[] = ['awaiting_approval', ...hidingStatuses]

export function isFinal(status: DeletionStatus): boolean {
  return finalDeletionStatuses.some((final) => final === status)
}

/**
 * Whether an attempt was ever made, here or before a restore: some of it may be erased, so nothing can be given back.
 * Attempts are counted before they act, and the restore guard counts those that only the journal knows.
 */
export function hasBegun({ attempts }: { readonly attempts: number }): boolean {
  return attempts > 0
}

/** Requests of one organisation that may be open at once: each costs every one of its reads a condition. */
export const openRequestsMax = 20

/** How often a request may take the whole process down with it before it is stopped for a person to look at. */
export const crashesMax = 3

/** How often an attempt may fail in an orderly way before the same. */
export const attemptsMax = 10

/** How long a request waits for a second person before it expires. */
export const approvalWaitMs = 30 * 86_400_000
