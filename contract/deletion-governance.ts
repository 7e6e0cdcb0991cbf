// Who else has a say in an erasure: the organisation's own policy of a second person, legal holds that defer it,
// and retention, which erases by the calendar.

import { z } from 'zod'
import { cursorQuery, Instant, limitQuery } from './common.ts'
import { SignalName } from './deletion.ts'
import { InstantInput } from './instant.ts'
import { oldNameOf } from './old-names.ts'

/** From loosest to strictest. */
export const approvalRules = ['none', 'all', 'always'] as const
export const ApprovalRule = z.enum(approvalRules)
export type ApprovalRule = z.infer<typeof ApprovalRule>

export const DeletionPolicy = z
  .object({
    approval: ApprovalRule.describe(
      'Which deletions a second owner or admin must approve: none, full erasures, or every one.',
    ),
    pending: z
      .object({ approval: ApprovalRule, effective_at: Instant })
      .nullable()
      .describe(
        'A looser rule that was asked for; it takes effect a day later, so that nobody loosens and erases.',
      ),
  })
  .describe('The deletion policy of your organisation.')
export type DeletionPolicy = z.infer<typeof DeletionPolicy>

export const SetDeletionPolicy = z.strictObject({ approval: ApprovalRule })

export const PlaceHold = z.strictObject({
  case_ref: z
    .string()
    .min(1)
    .max(100)
    .describe('What the hold is for, such as a case number. No personal data.'),
  range_start: InstantInput.optional().describe('Inclusive; open where absent.'),
  range_end: InstantInput.optional().describe('Exclusive; open where absent.'),
  signals: z
    .array(SignalName)
    .min(1)
    .max(3)
    .refine((list) => new Set(list).size === list.length, { error: 'Name each signal once.' })
    .optional()
    .describe('All three where absent.'),
  review_at: InstantInput.optional().describe('When somebody should look whether it is still needed.'),
})
export type PlaceHold = z.infer<typeof PlaceHold>

export const LegalHold = z
  .object({
    id: z.string(),
    hold_id: z.string().meta(oldNameOf('id')),
    case_ref: z.string(),
    signals: z.array(SignalName),
    range_start: Instant.nullable(),
    range_end: Instant.nullable(),
    review_at: Instant.nullable(),
    placed_by: z.string(),
    placed_at: Instant,
    released_by: z.string().nullable(),
    released_at: Instant.nullable(),
  })
  .describe('What may not be erased until it is released. A deletion of it is deferred, not forgotten.')
export type LegalHold = z.infer<typeof LegalHold>

export const HoldListQuery = z.strictObject({
  limit: limitQuery,
  cursor: cursorQuery,
  active: z.enum(['true', 'false']).optional(),
})

export const HoldParams = z.object({ hold_id: z.string().max(100) })

const days = z.int().min(1).max(3650).nullable()

export const Retention = z
  .object({ metrics_days: days, logs_days: days, traces_days: days })
  .describe('Telemetry older than this many whole UTC days is erased each night; null keeps it.')
export type Retention = z.infer<typeof Retention>

export const SetRetention = z.strictObject({
  metrics_days: days.optional(),
  logs_days: days.optional(),
  traces_days: days.optional(),
})
export type SetRetention = z.infer<typeof SetRetention>
