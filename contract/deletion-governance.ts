// Who else has a say in an erasure: the organisation's own policy of a second person, legal holds that defer it,
// and retention, which erases by the calendar.

import { z } from 'zod'
import { cursorQuery, Instant, limitQuery } from './common.ts'
import { SignalName } from './deletion.ts'
import { InstantInput } from './instant.ts'
import { oldNameOf } from './old-names.ts'

/** From loosest to strictest. */
export const approvalRules = ['none', 'full_erasures', 'every_deletion'] as const
export const ApprovalRule = z.enum(approvalRules)
export type ApprovalRule = z.infer<typeof ApprovalRule>

/** The first words for the rules, which read as synonyms. They are still accepted, and are in older audit entries. */
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
      'Which deletions a second owner or admin must approve: none; full erasures, which a range without a start or of more than 31 days counts as; or every one.',
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

export const SetDeletionPolicy = z.strictObject({ approval: ApprovalInput })

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
  .describe(
    'Telemetry older than this many whole UTC days is erased: at once, and then whenever a UTC day begins. Null keeps it.',
  )
export type Retention = z.infer<typeof Retention>

export const SetRetention = z
  .strictObject(Retention.shape)
  .describe('The whole rule. A field that is missing is refused, because either meaning of it could erase.')

export const PatchRetention = SetRetention.partial().describe(
  'What is absent stays as it is; null keeps a signal for good.',
)
export type PatchRetention = z.infer<typeof PatchRetention>
