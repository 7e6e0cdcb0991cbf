// The rules of a deletion request, without I/O: its states and who may move it, what its body means, and which
// telemetry it selects. SPEC.md beside this file says the same in words; a test holds the two against each other.

import type { z } from 'zod'
import {
  CreateDeletion,
  type DeletionStatus,
  type deletionReasons,
  deletionStatuses,
  finalDeletionStatuses,
  type PreviewDeletion,
} from '../../contract/deletion.ts'
import type { ValidationProblem } from '../../contract/errors.ts'
import { formatInstant, type Ns, nsPerMs } from '../../contract/instant.ts'
import { problem } from '../core/app-error.ts'
import { allTime, covers, overlaps, type TimeRange } from '../core/time-range.ts'
import type { HeldPart } from '../telemetry/held-part.ts'
import { type Signal, signals } from '../telemetry/schema/tables.ts'

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

/** What is to be erased. `all` has no bounds. */
export interface DeletionSelection {
  readonly scope: 'range' | 'all'
  readonly signals: readonly Signal[]
  readonly range: TimeRange
}

/** What an attempt may erase now: the selection without what is held. */
export interface ErasureTarget extends DeletionSelection {
  /** Every hold of the organisation: one beside the selection may keep an anomaly that reaches into it. */
  readonly held: readonly HeldPart[]
}

/** The holds that keep something of the selection. */
export function holdsWithin<T extends HeldPart>(selection: DeletionSelection, holds: readonly T[]): T[] {
  return holds.filter(
    (hold) =>
      overlaps(hold.range, selection.range) &&
      hold.signals.some((signal) => selection.signals.includes(signal)),
  )
}

/** Whether a hold keeps everything that is selected. */
export function keepsWhole(hold: HeldPart, selection: DeletionSelection): boolean {
  return (
    covers(hold.range, selection.range) && selection.signals.every((signal) => hold.signals.includes(signal))
  )
}

export interface DeletionDraft extends DeletionSelection {
  readonly reason: (typeof deletionReasons)[number] | null
  readonly note: string | null
  readonly delayMinutes: number
  readonly refuseLate: boolean
}

/** What a valid body selects. Signals come in their canonical order, so equal selections look equal. */
export function selectionIn(body: z.output<typeof PreviewDeletion>): DeletionSelection {
  return {
    scope: body.scope,
    signals: signals.filter((signal) => body.signals === undefined || body.signals.includes(signal)),
    range:
      body.scope === 'all' ? allTime : { startNs: body.range_start ?? null, endNs: body.range_end ?? null },
  }
}

/** The draft that a valid body means. */
export function draftOf(body: CreateDeletion): DeletionDraft {
  return {
    ...selectionIn(body),
    reason: body.reason ?? null,
    note: body.note ?? null,
    delayMinutes: body.delay_minutes ?? 0,
    refuseLate: body.refuse_late ?? false,
  }
}

/**
 * Problems that one field alone doesn't show: a confirmation that isn't the tenant_id, bounds that are missing,
 * reversed, equal, or beside `all`; of a deletion as of its preview. Takes the raw body, and passes over fields that the schema refuses anyway.
 */
export function crossFieldProblems(raw: unknown, tenantId: string): ValidationProblem[] {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return []
  const body = new Map<string, unknown>(Object.entries(raw))
  const problems: ValidationProblem[] = []
  const confirm = body.get('confirm')
  if (typeof confirm === 'string' && confirm !== tenantId) {
    problems.push(
      problem(
        ['body', 'confirm'],
        'value_error',
        'Type the tenant_id of your organisation exactly',
        confirm,
        {
          error: 'confirm does not equal your tenant_id',
        },
      ),
    )
  }
  if (body.get('scope') === 'all') return [...problems, ...boundsBesideAll(body)]
  return body.get('scope') === 'range' ? [...problems, ...boundsOfRange(body, raw)] : problems
}

function boundsBesideAll(body: ReadonlyMap<string, unknown>): ValidationProblem[] {
  return ['range_start', 'range_end']
    .filter((name) => body.has(name))
    .map((name) =>
      problem(
        ['body', name],
        'value_error',
        'A full erasure has no bounds: remove this field, or ask for the scope "range"',
        body.get(name),
        { error: 'bound beside scope "all"' },
      ),
    )
}

function boundsOfRange(body: ReadonlyMap<string, unknown>, raw: unknown): ValidationProblem[] {
  if (!body.has('range_end')) return [problem(['body', 'range_end'], 'missing', 'Field required', raw)]
  const bounds = CreateDeletion.pick({ range_start: true, range_end: true }).safeParse({
    range_end: body.get('range_end'),
    ...(body.has('range_start') && { range_start: body.get('range_start') }),
  })
  if (!bounds.success) return []
  const { range_start: startNs, range_end: endNs } = bounds.data
  if (startNs === undefined || endNs === undefined || startNs < endNs) return []
  return [
    problem(['body', 'range_end'], 'value_error', 'The end must be after the start', body.get('range_end'), {
      error: 'range_end is not after range_start',
      range_start: formatInstant(startNs),
    }),
  ]
}

/**
 * Time that is to be taken as unknown because of a deletion: what it selects, up to the moment it was done, since what
 * arrives for later time is a new beginning. Null where all of its range was yet to come.
 */
export function erasedTime({ range }: DeletionSelection, doneAtMs: number): TimeRange | null {
  const doneNs = BigInt(doneAtMs) * nsPerMs
  const endNs = range.endNs === null || range.endNs > doneNs ? doneNs : range.endNs
  return range.startNs !== null && range.startNs >= endNs ? null : { startNs: range.startNs, endNs }
}

/**
 * Whether an attempt was ever made, here or before a restore: some of it may be erased, so nothing can be given back.
 * Attempts are counted before they act, and the restore guard counts those that only the journal knows.
 */
export function hasBegun({ attempts }: { readonly attempts: number }): boolean {
  return attempts > 0
}

/** Whether erasing `wide` erases everything that `narrow` selects. */
export function includesSelection(wide: DeletionSelection, narrow: DeletionSelection): boolean {
  return covers(wide.range, narrow.range) && narrow.signals.every((signal) => wide.signals.includes(signal))
}

/** What the queue needs to know of a request. */
interface Queued {
  readonly tenantId: string
  readonly status: DeletionStatus
  readonly scope: 'range' | 'all'
  readonly startsAtMs: number | null
  readonly retryAtMs: number | null
}

/**
 * What may be attempted now, per organisation: full erasures first, because they finish what waits behind them, then
 * in the order given. A request that waits for its next attempt holds up those behind it in its own organisation.
 * What waits for a date starts by `dueMs`, and not while that is null.
 */
export function queuesOf<T extends Queued>(
  requests: readonly T[],
  nowMs: number,
  dueMs: number | null = nowMs,
): T[][] {
  const isDue = ({ startsAtMs }: T) => startsAtMs === null || (dueMs !== null && startsAtMs <= dueMs)
  const byTenant = Map.groupBy(
    requests.filter((request) => request.status !== 'scheduled' || isDue(request)),
    ({ tenantId }) => tenantId,
  )
  return [...byTenant.values()].map((own) => {
    const ordered = [
      ...own.filter(({ scope }) => scope === 'all'),
      ...own.filter(({ scope }) => scope !== 'all'),
    ]
    const firstWaiting = ordered.findIndex((request) => waitsForRetry(request, nowMs))
    return firstWaiting === -1 ? ordered : ordered.slice(0, firstWaiting)
  })
}

function waitsForRetry({ retryAtMs }: Queued, nowMs: number): boolean {
  const waitMs = (retryAtMs ?? 0) - nowMs
  // A wait longer than any that is ever set means that the clock was set back.
  return waitMs > 0 && waitMs <= retryDelayMaxMs
}

/** Requests of one organisation that may be open at once: each costs every one of its reads a condition. */
export const openRequestsMax = 20

/** How often a request may take the whole process down with it before it is stopped for a person to look at. */
export const crashesMax = 3

/** How often an attempt may fail in an orderly way before the same. */
export const attemptsMax = 10

const retryDelayMaxMs = 300_000

/** Pause before the next attempt, milliseconds: one second doubling to five minutes. */
export function retryDelayMs(attempts: number): number {
  return Math.min(retryDelayMaxMs, 1000 * 2 ** Math.max(0, attempts - 1))
}

/** How long a request waits for a second person before it expires. */
export const approvalWaitMs = 30 * 86_400_000

/** Stable text of what a draft asks for; equal exactly for drafts that do the same at the same time. */
export function draftText(
  draft: DeletionSelection & Pick<DeletionDraft, 'delayMinutes' | 'refuseLate'>,
): string {
  return [selectionText(draft), draft.delayMinutes, draft.refuseLate].join('|')
}

/** Stable text of a selection; equal exactly for selections that erase the same. */
export function selectionText({ scope, signals: selected, range }: DeletionSelection): string {
  const bound = (ns: Ns | null) => (ns === null ? '' : ns.toString())
  return [scope, selected.join('+'), bound(range.startNs), bound(range.endNs)].join('|')
}
