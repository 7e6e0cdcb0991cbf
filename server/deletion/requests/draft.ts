// What the body of a deletion asks for: a selection with a reason, a delay and the rule for late telemetry.
// Checks that need more than one field are here. Pure.

import type { z } from 'zod'
import { CreateDeletion, type deletionReasons, type PreviewDeletion } from '../../../contract/deletion.ts'
import type { ValidationProblem } from '../../../contract/errors.ts'
import { formatInstant } from '../../../contract/instant.ts'
import { problem } from '../../core/app-error.ts'
import { allTime } from '../../core/time-range.ts'
import { signals } from '../../telemetry/schema/tables.ts'
import { type DeletionSelection, selectionText } from './selection.ts'

export interface DeletionDraft extends DeletionSelection {
  readonly reason: (typeof deletionReasons)[number] | null
  readonly note: string | null
  readonly delayMinutes: number
  readonly refuseLate: boolean
}

/**
 * The selection of a valid body. Signals are in their canonical order, so equal selections are equal texts.
 */
export function selectionIn(body: z.output<typeof PreviewDeletion>): DeletionSelection {
  return {
    scope: body.scope,
    signals: signals.filter((signal) => body.signals === undefined || body.signals.includes(signal)),
    range:
      body.scope === 'all' ? allTime : { startNs: body.range_start ?? null, endNs: body.range_end ?? null },
  }
}

/** The draft of a valid body. */
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
 * Problems that need more than one field: a confirmation that isn't the tenant_id; bounds that are missing,
 * reversed, equal, or beside `all`. For the body of a deletion and of a preview. Takes the raw body and
 * ignores fields that the schema refuses anyway.
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
 * Stable text of a draft. Two drafts have the same text exactly where they erase the same at the same time.
 */
export function draftText(
  draft: DeletionSelection & Pick<DeletionDraft, 'delayMinutes' | 'refuseLate'>,
): string {
  return [selectionText(draft), draft.delayMinutes, draft.refuseLate].join('|')
}
