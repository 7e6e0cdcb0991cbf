// The rules of a deletion request, without I/O: its states and who may move it, what its body means, and which
// telemetry it selects. SPEC.md beside this file says the same in words; a test holds the two against each other.

import { CreateDeletion, type DeletionStatus, type deletionReasons } from '../../contract/deletion.ts'
import type { ValidationProblem } from '../../contract/errors.ts'
import { formatInstant, type Ns, nsPerMs } from '../../contract/instant.ts'
import { problem } from '../core/app-error.ts'
import { allTime, covers, type TimeRange } from '../core/time-range.ts'
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
] as const
export type DeletionEvent = (typeof deletionEvents)[number]

/** Every state against every event: the state it leads to, or null where the event is refused. */
export const transitions = {
  awaiting_approval: row({
    approve: 'scheduled',
    reject: 'rejected',
    expire: 'expired',
    cancel: 'cancelled',
  }),
  scheduled: row({ cancel: 'cancelled', hold: 'held', start: 'running' }),
  held: row({ cancel: 'cancelled', release: 'scheduled' }),
  running: row({ removed: 'verifying', interrupt: 'incomplete', give_up: 'failed' }),
  verifying: row({
    verified: 'completed',
    left_over: 'incomplete',
    interrupt: 'incomplete',
    give_up: 'failed',
  }),
  incomplete: row({ start: 'running', hold: 'held', give_up: 'failed' }),
  failed: row({ start: 'running', verified: 'completed' }),
  completed: row({}),
  cancelled: row({}),
  rejected: row({}),
  expired: row({}),
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

/** States in which the selection is hidden from every reader. Only a state that gives the telemetry back shows it again. */
export const hidingStatuses = [
  'awaiting_approval',
  'scheduled',
  'held',
  'running',
  'verifying',
  'incomplete',
  'failed',
] as const satisfies readonly DeletionStatus[]

/** States that nothing leaves by itself; `finished_at` is set on entering one. */
export const finalStatuses = [
  'completed',
  'failed',
  'cancelled',
  'rejected',
  'expired',
] as const satisfies readonly DeletionStatus[]

export function isFinal(status: DeletionStatus): boolean {
  return finalStatuses.some((final) => final === status)
}

/** What is to be erased. `all` has no bounds. */
export interface DeletionSelection {
  readonly scope: 'range' | 'all'
  readonly signals: readonly Signal[]
  readonly range: TimeRange
}

export interface DeletionDraft extends DeletionSelection {
  readonly reason: (typeof deletionReasons)[number] | null
  readonly note: string | null
}

/** The draft that a valid body means. Signals come in their canonical order, so equal selections look equal. */
export function draftOf(body: CreateDeletion): DeletionDraft {
  return {
    scope: body.scope,
    signals: signals.filter((signal) => body.signals === undefined || body.signals.includes(signal)),
    range:
      body.scope === 'all' ? allTime : { startNs: body.range_start ?? null, endNs: body.range_end ?? null },
    reason: body.reason ?? null,
    note: body.note ?? null,
  }
}

/**
 * Problems that one field alone doesn't show: a confirmation that isn't the tenant_id, bounds that are missing,
 * reversed, equal, or beside `all`. Takes the raw body, and passes over fields that the schema refuses anyway.
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
  if (body.get('scope') === 'all') problems.push(...boundsBesideAll(body))
  if (body.get('scope') === 'range') problems.push(...boundsOfRange(body, raw))
  return problems
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
 * Time that is to be taken as unknown because of a deletion: its range, or for `all` everything up to the moment
 * it was done, since what arrives afterwards is a new beginning.
 */
export function erasedTime(selection: DeletionSelection, doneAtMs: number): TimeRange {
  return selection.scope === 'all' ? { startNs: null, endNs: BigInt(doneAtMs) * nsPerMs } : selection.range
}

/** Whether erasing `wide` erases everything that `narrow` selects. */
export function includesSelection(wide: DeletionSelection, narrow: DeletionSelection): boolean {
  return covers(wide.range, narrow.range) && narrow.signals.every((signal) => wide.signals.includes(signal))
}

/** Requests of one organisation that may be open at once: each costs every one of its reads a condition. */
export const openRequestsMax = 20

/** How often a request may take the whole process down with it before it is stopped for a person to look at. */
export const crashesMax = 3

/** How often an attempt may fail in an orderly way before the same. */
export const attemptsMax = 10

export const retryDelayMaxMs = 300_000

/** Pause before the next attempt, milliseconds: one second doubling to five minutes. */
export function retryDelayMs(attempts: number): number {
  return Math.min(retryDelayMaxMs, 1000 * 2 ** Math.max(0, attempts - 1))
}

/** Stable text of a selection; equal exactly for selections that erase the same. */
export function selectionText({ scope, signals: selected, range }: DeletionSelection): string {
  const bound = (ns: Ns | null) => (ns === null ? '' : ns.toString())
  return [scope, selected.join('+'), bound(range.startNs), bound(range.endNs)].join('|')
}
