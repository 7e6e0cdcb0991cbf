// Rules that people set for erasures: the organisation's policy of a second person, legal holds that defer an
// erasure, and retention, which erases by the calendar.

import { z } from 'zod'
import { cursorQuery, Instant, limitQuery } from '../values/fields.ts'
import { InstantInput } from '../values/instant.ts'
import { oldNameOf } from '../values/old-names.ts'
import { SignalName } from './requests.ts'

/** From loosest to strictest. */
export const approvalRules = ['none', 'full_erasures', 'every_deletion'] as const
export const ApprovalRule = z.enum(approvalRules).meta({ id: 'ApprovalRule' })
export type ApprovalRule = z.infer<typeof ApprovalRule>

/**
 * The old names of the rules, which could be mistaken for each other. They are still accepted, and older
 * audit entries have them.
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
        description: 'The old names of `full_erasures` and `every_deletion`.',
      },
    ],
  })

export const DeletionPolicy = z
  .object({
    approval: ApprovalRule.describe(
      'Which deletions a second owner or admin must approve: none; full erasures; or every one. These also count as full erasures: a range without a start, a range of more than 31 days, and a range that covers more than 31 days together with what the same person has erased alone in the last 31 days. Under both rules a second owner or admin must also approve a shorter retention.',
    ),
    pending: z
      .object({ approval: ApprovalRule, effective_at: Instant })
      .nullable()
      .describe(
        'A looser rule that was requested; it takes effect a day later, so that nobody can loosen the rule and erase at once. It is dropped where the token of an owner or admin is revoked before.',
      ),
    second_person: z
      .object({
        told_by: z.literal('tokens'),
        limit: z.string().describe('What this cannot distinguish, as text for people.'),
      })
      .describe(
        'How two people are distinguished. The service knows access tokens, not people: a token and all its descendants count as one person, and two tokens that the operator created count as two people, even if one person has both.',
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
    review_at: InstantInput.optional().describe('When a person should check whether it is still needed.'),
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
  .describe(
    'Telemetry that may not be erased until the hold is released. A deletion that it covers is deferred and continues after the release.',
  )
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
    approve_by: Instant.describe('It expires unless a second person approves it before this time.'),
  })
  .describe('Shorter retention that waits for a second person: it has only the signals that it shortens.')
  .meta({ id: 'RetentionChange' })
export type RetentionChange = z.infer<typeof RetentionChange>

export const Retention = RetentionRule.extend({
  pending: z
    .array(RetentionChange)
    .optional()
    .describe(
      'Changes that wait for a second person and are not in force, oldest first. Absent where nothing waits, so that a client can send this body back with PUT.',
    ),
})
  .describe(
    'Telemetry older than this many whole UTC days is erased, at once and then at the start of each UTC day. Null keeps it. Where the deletion policy requires a second person, a first limit or a shorter one is in force only after another owner or admin has approved it.',
  )
  .meta({ id: 'Retention' })
export type Retention = z.infer<typeof Retention>

export const SetRetention = z
  .strictObject(RetentionRule.shape)
  .describe(
    'The whole rule. A missing field is refused, because both possible meanings of it could erase telemetry.',
  )
  .meta({ id: 'SetRetention' })

export const PatchRetention = SetRetention.partial()
  .describe(
    'An absent field does not change; null keeps the signal without a limit. A field that is given withdraws a change of that signal that waits for approval.',
  )
  .meta({ id: 'PatchRetention' })
export type PatchRetention = z.infer<typeof PatchRetention>

export const RetentionChangeParams = z.object({ change_id: z.string().max(100) })

export const RejectRetentionChange = z
  .strictObject({
    reason: z.string().min(1).max(500).describe('The reason; it is recorded. Put no personal data here.'),
  })
  .meta({ id: 'RejectRetentionChange' })
