// What the body of a deletion asks for: a selection with a reason, a delay and the rule for late telemetry.
// Rules that need more than one field are here. Pure.

import type { z } from 'zod'
import type { CreateDeletion, deletionReasons, PreviewDeletion } from '../../../contract/deletion/requests.ts'
import type { ValidationProblem } from '../../../contract/errors.ts'
import { problem } from '../../core/app-error.ts'
import { isRecord } from '../../core/input/is-record.ts'
import type { Parsed, SentBody } from '../../core/input/parsed.ts'
import { allTime } from '../../core/time-range.ts'
import { signals } from '../../telemetry/schema/tables.ts'
import { reversedBounds } from './reversed-bounds.ts'
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
function selectionIn(body: z.output<typeof PreviewDeletion>): DeletionSelection {
  return {
    scope: body.scope,
    signals: signals.filter((signal) => body.signals === undefined || body.signals.includes(signal)),
    range:
      body.scope === 'all' ? allTime : { startNs: body.range_start ?? null, endNs: body.range_end ?? null },
  }
}

/** The draft of a valid body. */
function draftOf(body: CreateDeletion): DeletionDraft {
  return {
    ...selectionIn(body),
    reason: body.reason ?? null,
    note: body.note ?? null,
    delayMinutes: body.delay_minutes ?? 0,
    refuseLate: body.refuse_late ?? false,
  }
}

/** What the body of a deletion asks for, or the problems that need more than one field. */
export function readDeletion(sent: SentBody<CreateDeletion>, tenantId: string): Parsed<DeletionDraft> {
  const problems = [...confirmationProblems(sent.fields, tenantId), ...boundProblems(sent)]
  return sent.body === undefined || problems.length > 0 ? { problems } : { value: draftOf(sent.body) }
}

/** What the body of a preview selects, or the problems of its bounds together and of its confirmation. */
export function readSelection(
  sent: SentBody<z.output<typeof PreviewDeletion>>,
  tenantId: string,
): Parsed<DeletionSelection> {
  const problems = [...confirmationProblems(sent.fields, tenantId), ...boundProblems(sent)]
  return sent.body === undefined || problems.length > 0 ? { problems } : { value: selectionIn(sent.body) }
}

/** A confirmation that isn't the tenant_id. */
function confirmationProblems(
  { confirm }: { readonly confirm?: string | undefined },
  tenantId: string,
): ValidationProblem[] {
  if (confirm === undefined || confirm === tenantId) return []
  const sentence = 'Type the tenant_id of your organisation exactly'
  const error = 'confirm does not equal your tenant_id'
  return [problem(['body', 'confirm'], 'value_error', sentence, confirm, { error })]
}

/** Bounds that are missing, reversed, equal, or beside `all`. */
function boundProblems({
  fields,
  raw,
}: Pick<SentBody<z.output<typeof PreviewDeletion>>, 'fields' | 'raw'>): ValidationProblem[] {
  const sent = isRecord(raw) ? raw : {}
  if (fields.scope === 'all') return boundsBesideAll(sent)
  if (fields.scope !== 'range') return []
  if (!Object.hasOwn(sent, 'range_end')) {
    return [problem(['body', 'range_end'], 'missing', 'Field required', raw)]
  }
  return reversedBounds(fields, raw)
}

function boundsBesideAll(sent: Readonly<Record<string, unknown>>): ValidationProblem[] {
  return ['range_start', 'range_end']
    .filter((name) => Object.hasOwn(sent, name))
    .map((name) =>
      problem(
        ['body', name],
        'value_error',
        'A full erasure has no bounds: remove this field, or ask for the scope "range"',
        sent[name],
        { error: 'bound beside scope "all"' },
      ),
    )
}

/**
 * Stable text of a draft. Two drafts have the same text exactly where they erase the same at the same time.
 */
export function draftText(
  draft: DeletionSelection & Pick<DeletionDraft, 'delayMinutes' | 'refuseLate'>,
): string {
  return [selectionText(draft), draft.delayMinutes, draft.refuseLate].join('|')
}
