// Who else has a say in an erasure: the organisation's own policy of a second person, legal holds that defer
// it, and retention, which erases by the calendar.

import { z } from 'zod'
import { cursorQuery, Instant, limitQuery } from './common.ts'
import { SignalName } from './deletion.ts'
import { InstantInput } from './instant.ts'
import { oldNameOf } from './old-names.ts'

/** From loosest to strictest. */
export const approvalRules = ['none', 'full_erasures', 'every_deletion'] as const
export const ApprovalRule = z.enum(approvalRules).meta({ id: 'ApprovalRule' })
export type ApprovalRule = z.infer<typeof ApprovalRule>

/**
 * The first words for the rules, which read as synonyms. They are still accepted, and
 * are in older audit entries.
 */
export const oldApprovalRules = { all: 'full_erasures', always: 'every_deletion' } as const satisfies Record<
  string,
  ApprovalRule
>
const oldApprovalWords: Readonly<Record<string, ApprovalRule>> = oldApprovalRules

const ApprovalInput = z
  .preprocess(
    (given) =>
      typeof given === 'string' && Object.hasOwn(oldApprovalWords, given) ? oldApprovalWords[given] : given,
    ApprovalRule,
  )
  .meta({
    type: 'string',
    anyOf: [
      { enum: [...approvalRules] },
      {
        enum: Object.keys(oldApprovalRules),
        deprecated: true,
        description: 'The old words for `full_erasures` and `every_deletion`.',
      },
    ],
  })

export const DeletionPolicy = z
  .object({
    approval: ApprovalRule.describe(
      'Which deletions a second owner or admin must approve: none; full erasures; or every one. As a full erasure counts a range without a start or of more than 31 days, and one that covers more than 31 days together with what the same person has erased alone in the last 31 days. Under both rules a second owner or admin must also approve a shorter retention.',
    ),
    pending: z
      .object({ approval: ApprovalRule, effective_at: Instant })
      .nullable()
      .describe(
        'A looser rule that was asked for; it takes effect a day later, so that nobody loosens and erases.',
      ),
    second_person: z
      .object({
        told_by: z.literal('tokens'),
        limit: z.string().describe('What that can’t tell, for a person to read.'),
      })
      .describe(
        'How two people are told apart. The service knows access tokens and no people: tokens of one line are one person, and two tokens that the operator made are two people, whoever holds them.',
      ),
  })
  .describe('The deletion policy of your organisation.')
  .meta({ id: 'DeletionPolicy' })
export type DeletionPolicy = z.infer<typeof DeletionPolicy>

export const SetDeletionPolicy = z.strictObject({ approval: ApprovalInput }).meta({ id: 'SetDeletionPolicy' })

export const PlaceHold = z
  .strictObject({
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
  .meta({ id: 'PlaceHold' })
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
  .meta({ id: 'LegalHold' })
export type LegalHold = z.infer<typeof LegalHold>

export const HoldListQuery = z.strictObject({
  limit: limitQuery,
  cursor: cursorQuery,
  active: z.enum(['true', 'false']).optional(),
})

export const HoldParams = z.object({ hold_id: z.string().max(100) })

const days = z.int().min(1).max(3650).nullable()

const RetentionRule = z.object({ metrics_days: days, logs_days: days, traces_days: days })

export const RetentionChange = z
  .object({
    id: z.string(),
    metrics_days: z.int().optional(),
    logs_days: z.int().optional(),
    traces_days: z.int().optional(),
    requested_by: z.string(),
    requested_at: Instant,
    approve_by: Instant.describe('It expires unless a second person approves it before.'),
  })
  .describe('Shorter retention that waits for a second person: only the signals that it shortens are named.')
  .meta({ id: 'RetentionChange' })
export type RetentionChange = z.infer<typeof RetentionChange>

export const Retention = RetentionRule.extend({
  pending: z
    .array(RetentionChange)
    .optional()
    .describe(
      'What waits for a second person, oldest first, and is not in force; absent where nothing waits, so that this body can be put back.',
    ),
})
  .describe(
    'Telemetry older than this many whole UTC days is erased: at once, and then whenever a UTC day begins. Null keeps it. Where the deletion policy asks for a second person, fewer days, also the first ones, are in force once another owner or admin has approved them.',
  )
  .meta({ id: 'Retention' })
export type Retention = z.infer<typeof Retention>

export const SetRetention = z
  .strictObject(RetentionRule.shape)
  .describe('The whole rule. A field that is missing is refused, because either meaning of it could erase.')
  .meta({ id: 'SetRetention' })

export const PatchRetention = SetRetention.partial()
  .describe(
    'What is absent stays as it is; null keeps a signal for good. What is named takes back what waits for that signal.',
  )
  .meta({ id: 'PatchRetention' })
export type PatchRetention = z.infer<typeof PatchRetention>

export const RetentionChangeParams = z.object({ change_id: z.string().max(100) })

export const RejectRetentionChange = z
  .strictObject({
    reason: z.string().min(1).max(500).describe('Why; recorded. Put no personal data here.'),
  })
  .meta({ id: 'RejectRetentionChange' })
