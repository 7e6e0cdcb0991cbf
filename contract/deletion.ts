// Erasing an organisation's own telemetry, on the wire. The first nine fields of `DeletionRequest` and the two
// required fields of the body are the interface the product was ordered with; the rest tells the truth about
// the same act in finer grain.

import { z } from 'zod'
import { cursorQuery, Instant, limitQuery } from './common.ts'
import { InstantInput } from './instant.ts'

export const deletionScopes = ['range', 'all'] as const
export const DeletionScope = z.enum(deletionScopes)

export const deletionStatuses = [
  'awaiting_approval',
  'scheduled',
  'held',
  'running',
  'verifying',
  'completed',
  'incomplete',
  'failed',
  'cancelled',
  'rejected',
  'expired',
] as const
export const DeletionStatus = z.enum(deletionStatuses)
export type DeletionStatus = z.infer<typeof DeletionStatus>

export const SignalName = z.enum(['metrics', 'logs', 'traces'])

export const deletionReasons = [
  'leaked_secret',
  'personal_data',
  'bad_data',
  'offboarding',
  'cost',
  'retention',
  'other',
] as const

export const CreateDeletion = z.strictObject({
  scope: DeletionScope.describe(
    '"range" erases everything before range_end, or between range_start and range_end; "all" erases all telemetry of your organisation.',
  ),
  confirm: z.string().describe('Your tenant_id, typed in full.'),
  range_start: InstantInput.optional().describe('Inclusive. Everything before range_end where absent.'),
  range_end: InstantInput.optional().describe('Exclusive. Required for "range", forbidden for "all".'),
  signals: z
    .array(SignalName)
    .min(1)
    .max(3)
    .refine((list) => new Set(list).size === list.length, { error: 'Name each signal once.' })
    .optional()
    .describe('All three where absent.'),
  reason: z.enum(deletionReasons).optional(),
  note: z
    .string()
    .max(500)
    .optional()
    .describe('Free text for your records. It outlives the telemetry: put no personal data here.'),
})
export type CreateDeletion = z.infer<typeof CreateDeletion>

export const DeletionRequest = z
  .object({
    request_id: z.string(),
    scope: DeletionScope,
    status: DeletionStatus,
    range_start: Instant.nullable().describe('Null where the deletion has no lower bound.'),
    range_end: Instant.nullable().describe('Null on a full erasure.'),
    detail: z.record(z.string(), z.unknown()).describe('Progress, counts and reasons; free-form.'),
    created_at: Instant,
    finished_at: Instant.nullable().describe('Null until a final status is reached.'),
    requested_by: z.string(),
    signals: z.array(SignalName),
    reason: z.enum(deletionReasons).nullable(),
    note: z.string().nullable(),
    hidden_at: Instant.nullable().describe('Since then no reader sees the selected telemetry.'),
    removed_at: Instant.nullable().describe('Since then no live byte of it is on disk.'),
    verified_at: Instant.nullable().describe('Then a separate count over every store found none.'),
  })
  .describe('A deletion request: what it selects, where it stands, and the clocks of what is true so far.')
export type DeletionRequest = z.infer<typeof DeletionRequest>

export const DeletionListQuery = z.strictObject({
  limit: limitQuery,
  cursor: cursorQuery,
  status: DeletionStatus.optional(),
})

export const DeletionParams = z.object({ request_id: z.string().max(100) })

export const LedgerEntry = z
  .object({
    seq: z.int(),
    kind: z.string().describe('`data_deletion_request`.'),
    request_id: z.string(),
    at: Instant,
    actor: z.string(),
    from_status: z.string().nullable(),
    to_status: z.string(),
    facts: z.record(z.string(), z.unknown()).describe('Counts, bounds and clocks; never telemetry.'),
    prev_hash: z.string(),
    hash: z.string().describe('SHA-256 over the RFC 8785 form of this entry without `hash`.'),
  })
  .describe('One step in the life of a deletion request; entries of an organisation form a hash chain.')
