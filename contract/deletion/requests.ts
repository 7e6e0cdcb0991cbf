// Erasing an organisation's own telemetry, on the wire. The first nine fields of `DeletionRequest` and the
// two required fields of the body were given with the requirements of the product; the other fields describe
// the same request in more detail.

import { z } from 'zod'
import { ErrorBody } from '../errors.ts'
import { cursorQuery, Instant, limitQuery } from '../values/fields.ts'
import { InstantInput } from '../values/instant.ts'
import { oldNameOf } from '../values/old-names.ts'

const deletionScopes = ['range', 'all'] as const
export const DeletionScope = z.enum(deletionScopes).meta({ id: 'DeletionScope' })

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
/**
 * Final statuses: no request leaves them without a person's decision. `finished_at` is set on entering one.
 */
export const finalDeletionStatuses = [
  'completed',
  'failed',
  'cancelled',
  'rejected',
  'expired',
] as const satisfies readonly (typeof deletionStatuses)[number][]

export const DeletionStatus = z.enum(deletionStatuses).meta({ id: 'DeletionStatus' })
export type DeletionStatus = z.infer<typeof DeletionStatus>

export const SignalName = z.enum(['metrics', 'logs', 'traces']).meta({ id: 'SignalName' })

export const deletionReasons = [
  'leaked_secret',
  'personal_data',
  'bad_data',
  'offboarding',
  'cost',
  'retention',
  'other',
] as const

/** Thirty days: long enough for any notice period, and short enough that people remember what is waiting. */
export const delayMinutesMax = 43_200

export const CreateDeletion = z
  .strictObject({
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
    delay_minutes: z
      .int()
      .min(0)
      .max(delayMinutesMax)
      .optional()
      .describe(
        'The telemetry is hidden at once and removed after this delay; until then the deletion can be cancelled. Where absent, it is removed at once.',
      ),
    refuse_late: z
      .boolean()
      .optional()
      .describe(
        'True: telemetry for the erased time is also refused after the erasure. Where absent or false, it is accepted again as new telemetry.',
      ),
    preview_id: z
      .string()
      .max(100)
      .optional()
      .describe('Erase only if the preview is still correct; otherwise 412 with a new preview.'),
  })
  .meta({ id: 'CreateDeletion' })
export type CreateDeletion = z.infer<typeof CreateDeletion>

export const DeletionRequest = z
  .object({
    request_id: z.string(),
    id: z.string().describe('The same as `request_id`; every resource has its id under this name.'),
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
    hidden_at: Instant.nullable().describe(
      'From this time on, no reader sees the selected telemetry; null while the request waits for approval.',
    ),
    removed_at: Instant.nullable().describe('From this time on, no file of the data folder has it.'),
    verified_at: Instant.nullable().describe(
      'At this time, a separate count of every store found none of it.',
    ),
    backups_clear_by: Instant.nullable().describe(
      'When the last known backup that may contain a copy expires; null where none is known.',
    ),
    starts_at: Instant.nullable().describe(
      'It is not removed before this time, and can be cancelled until then.',
    ),
    approve_by: Instant.nullable().describe(
      'The request expires unless a second person approves it before this time; null where no approval is required. A policy that becomes stricter before the erasure begins can require one later.',
    ),
    approved_by: z.string().nullable(),
    refuse_late: z.boolean(),
    late_rows: z.int().describe('Rows refused after the erasure because of refuse_late.'),
  })
  .describe('A deletion request: its selection, its status, and the times at which each stage was reached.')
  .meta({ id: 'DeletionRequest' })
export type DeletionRequest = z.infer<typeof DeletionRequest>

export const DeletionListQuery = z.strictObject({
  limit: limitQuery,
  cursor: cursorQuery,
  status: DeletionStatus.optional(),
})

const SelectionCount = z.object({
  rows: z.int(),
  bytes: z
    .int()
    .describe(
      'Compressed bytes on disk; where organisations share a placement, an estimate from your own rows.',
    ),
})

export const PreviewDeletion = CreateDeletion.partial({ confirm: true })
  .describe(
    'The body of the deletion. `confirm` is optional and is checked where it is given. `preview_id` and other fields that are not part of the selection are checked and have no effect.',
  )
  .meta({ id: 'PreviewDeletion' })

/**
 * `future_end`: the range ends in the future. `ranges_together`: a second person is needed because of earlier
 * requests. `nothing_left`: one is needed because nothing older than a day is known to stay of a signal.
 */
const previewWarnings = ['future_end', 'ranges_together', 'nothing_left'] as const

export const DeletionPreview = z
  .object({
    id: z
      .string()
      .describe(
        'Send it as `preview_id` of the deletion to erase only what was counted here, within `tolerance_rows`.',
      ),
    preview_id: z.string().meta(oldNameOf('id')),
    created_at: Instant,
    expires_at: Instant,
    scope: DeletionScope,
    range_start: Instant.nullable(),
    range_end: Instant.nullable(),
    ...SelectionCount.shape,
    signals: z.array(
      z.object({
        signal: SignalName,
        ...SelectionCount.shape,
        first: Instant.nullable(),
        last: Instant.nullable(),
        services: z
          .array(z.string())
          .describe(
            'The services with the most rows, at most 100. A name of more than 1,024 characters is cut and ends with an ellipsis.',
          ),
        services_total: z.int(),
      }),
    ),
    derived: z.object({
      anomalies: z.int().describe('Anomalies in the range; they are removed.'),
      anomalies_learned_from: z
        .int()
        .describe('Later anomalies whose expected band was computed from the range; their band is removed.'),
    }),
    held: z
      .array(
        z.object({
          hold_id: z.string(),
          signals: z.array(SignalName),
          range_start: Instant.nullable(),
          range_end: Instant.nullable(),
        }),
      )
      .describe('Legal holds that overlap; what they cover is erased when they are released.'),
    backups: z.array(z.object({ backup_id: z.string(), taken_at: Instant, expires_at: Instant })),
    backups_clear_by: Instant.nullable(),
    work: z
      .object({
        partitions_dropped: z.int().describe('Partitions in which none of your rows is left.'),
        partitions_rewritten: z.int(),
        bytes_rewritten: z.int().describe('Bytes of your own remaining rows, which are copied.'),
      })
      .describe('The work of erasing it now; an estimate.'),
    needs_approval: z.boolean(),
    warnings: z
      .array(z.object({ code: z.enum(previewWarnings), message: z.string() }))
      .describe(
        'What may be a mistake; empty where nothing is unusual. A warning does not refuse the deletion.',
      ),
    tolerance_rows: z
      .int()
      .describe(
        'By how many rows the selection may differ at the time of the deletion; 412 if it differs more.',
      ),
  })
  .describe('What a deletion would erase now: everything selected that is not hidden by another deletion.')
  .meta({ id: 'DeletionPreview' })
export type DeletionPreview = z.infer<typeof DeletionPreview>

export const StalePreview = ErrorBody.extend({ preview: DeletionPreview })
  .describe(
    '`preview_stale`: the preview has expired or what it counted has changed. `preview` is a new one.',
  )
  .meta({ id: 'StalePreview' })

export const RejectDeletion = z
  .strictObject({
    reason: z.string().min(1).max(500).describe('The reason; it is recorded. Put no personal data here.'),
  })
  .meta({ id: 'RejectDeletion' })

export const ReadBackResult = z
  .object({
    request_id: z.string(),
    checked_at: Instant,
    is_clean: z.boolean(),
    remaining: z
      .record(z.string(), z.int())
      .describe('Rows found per store; all zero where nothing is left.'),
    deletion: DeletionRequest,
  })
  .describe(
    'A new count of everything that the deletion selects. It can complete a deletion and never undoes one.',
  )
  .meta({ id: 'ReadBackResult' })

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
    facts: z.record(z.string(), z.unknown()).describe('Counts, bounds and times; never telemetry.'),
    prev_hash: z.string(),
    hash: z.string().describe('SHA-256 over the RFC 8785 form of this entry without `hash`.'),
  })
  .describe('One change of a deletion request; the entries of an organisation form a hash chain.')
  .meta({ id: 'LedgerEntry' })
