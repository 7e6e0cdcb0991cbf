// Erasing an organisation's own telemetry, on the wire. The first nine fields of `DeletionRequest` and the
// two required fields of the body are the interface the product was ordered with; the rest tells the truth
// about the same act in finer grain.

import { z } from 'zod'
import { cursorQuery, Instant, limitQuery } from './common.ts'
import { ErrorBody } from './errors.ts'
import { InstantInput } from './instant.ts'
import { oldNameOf } from './old-names.ts'

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
/** Statuses that nothing leaves by itself; `finished_at` is set on entering one. */
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

/** Thirty days: long enough for any notice period, short enough that nobody forgets what is waiting. */
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
        'Hidden at once, removed after this long; until then it can be cancelled. Removed at once where absent.',
      ),
    refuse_late: z
      .boolean()
      .optional()
      .describe(
        'Keep refusing telemetry for the erased time once it is erased. Accepted again as something new where absent or false.',
      ),
    preview_id: z
      .string()
      .max(100)
      .optional()
      .describe('Erase only if what was previewed still holds; 412 with a new preview otherwise.'),
  })
  .meta({ id: 'CreateDeletion' })
export type CreateDeletion = z.infer<typeof CreateDeletion>

export const DeletionRequest = z
  .object({
    request_id: z.string(),
    id: z.string().describe('The same as `request_id`, under the name that the id of every thing has.'),
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
    backups_clear_by: Instant.nullable().describe(
      'When the last known backup that may hold a copy expires; null where none is known.',
    ),
    starts_at: Instant.nullable().describe('Not removed before this, so it can be cancelled until then.'),
    approve_by: Instant.nullable().describe(
      'The request expires unless a second person approves it before; null where none is asked.',
    ),
    approved_by: z.string().nullable(),
    refuse_late: z.boolean(),
    late_rows: z.int().describe('Rows refused since because of refuse_late.'),
  })
  .describe('A deletion request: what it selects, where it stands, and the clocks of what is true so far.')
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
    'The body of the deletion. `confirm` may be left out, and is checked where it is there; `preview_id` means nothing here. What else does not select anything is checked and has no effect.',
  )
  .meta({ id: 'PreviewDeletion' })

/**
 * `future_end`: the range ends in time that has not come. `ranges_together`: a second person is needed
 * because of what was asked for before.
 */
const previewWarnings = ['future_end', 'ranges_together'] as const

export const DeletionPreview = z
  .object({
    id: z
      .string()
      .describe('Name it as `preview_id` in the deletion, to erase this, within `tolerance_rows`.'),
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
        services: z.array(z.string()).describe('The busiest, at most 100.'),
        services_total: z.int(),
      }),
    ),
    derived: z.object({
      anomalies: z.int().describe('Anomalies in the range; removed.'),
      anomalies_learned_from: z
        .int()
        .describe('Later anomalies whose expected band was computed from the range; the band is removed.'),
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
        partitions_dropped: z.int().describe('In which nothing of yours is left.'),
        partitions_rewritten: z.int(),
        bytes_rewritten: z.int().describe('Bytes of your own survivors, which are copied.'),
      })
      .describe('What erasing would do now; an estimate.'),
    needs_approval: z.boolean(),
    warnings: z
      .array(z.object({ code: z.enum(previewWarnings), message: z.string() }))
      .describe('What may not be meant; empty where nothing is unusual. None of it refuses the deletion.'),
    tolerance_rows: z
      .int()
      .describe('By how many rows the selection may differ when the deletion comes; 412 beyond.'),
  })
  .describe(
    'What a deletion would erase, as counted now: all that is selected and not yet hidden by another deletion.',
  )
  .meta({ id: 'DeletionPreview' })
export type DeletionPreview = z.infer<typeof DeletionPreview>

export const StalePreview = ErrorBody.extend({ preview: DeletionPreview })
  .describe(
    '`preview_stale`: the preview has expired or what it counted has changed. `preview` is a new one.',
  )
  .meta({ id: 'StalePreview' })

export const RejectDeletion = z
  .strictObject({
    reason: z.string().min(1).max(500).describe('Why; recorded. Put no personal data here.'),
  })
  .meta({ id: 'RejectDeletion' })

export const ReadBackResult = z
  .object({
    request_id: z.string(),
    checked_at: Instant,
    is_clean: z.boolean(),
    remaining: z.record(z.string(), z.int()).describe('Rows found per store; zero in all where it is clean.'),
    deletion: DeletionRequest,
  })
  .describe('A new count of everything the deletion selects. It may complete a deletion, never undo one.')
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
    facts: z.record(z.string(), z.unknown()).describe('Counts, bounds and clocks; never telemetry.'),
    prev_hash: z.string(),
    hash: z.string().describe('SHA-256 over the RFC 8785 form of this entry without `hash`.'),
  })
  .describe('One step in the life of a deletion request; entries of an organisation form a hash chain.')
  .meta({ id: 'LedgerEntry' })
