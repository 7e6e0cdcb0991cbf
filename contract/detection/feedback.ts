// Feedback of people to detectors, on the wire: that an anomaly was none, or was real, and when not to alarm.

import { z } from 'zod'
import { cursorQuery, Instant, limitQuery } from '../values/fields.ts'
import { InstantInput } from '../values/instant.ts'
import { areShort, labelMap, storedLabels, tooManyBytes } from '../values/label-map.ts'
import { oldNameOf, withOldNames } from '../values/old-names.ts'
import { isTimeZone } from '../values/time-zone.ts'

export const Verdict = z.enum(['not_an_anomaly', 'real']).meta({ id: 'Verdict' })
export type Verdict = z.infer<typeof Verdict>

const note = z.string().max(500)

export const GiveFeedback = z
  .strictObject({
    verdict: Verdict.describe(
      '"not_an_anomaly" moves the edge of alarm of this series, on this side, out beyond what was seen, at most to 10 times its own distance; "real" takes that back, and keeps the edge inside what was seen.',
    ),
    note: note.optional().describe('For people; removed with the telemetry it is about.'),
  })
  .meta({ id: 'GiveFeedback' })
export type GiveFeedback = z.infer<typeof GiveFeedback>

export const Feedback = z
  .object({
    verdict: Verdict,
    note: z.string().nullable(),
    given_by: z.string(),
    given_at: Instant,
    effect: z.string().describe('What it changes, in a sentence.'),
  })
  .meta({ id: 'Feedback' })
export type Feedback = z.infer<typeof Feedback>

export const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const

const timeOfDay = z.string().regex(/^(?:[01]\d|2[0-3]):[0-5]\d$/, { error: 'Write a time of day as 22:30' })

export const Weekly = z
  .strictObject({
    days: z.array(z.enum(weekdays)).min(1).max(7),
    from: timeOfDay.describe('Inclusive, in the time zone.'),
    until: timeOfDay.describe('Exclusive; on the next day if it is not later than `from`.'),
    time_zone: z
      .string()
      .max(100)
      .refine(isTimeZone, { error: 'Name a time zone of the IANA database, such as Europe/Berlin or UTC' }),
  })
  .describe('Every week, in local time.')
  .meta({ id: 'Weekly' })
export type Weekly = z.infer<typeof Weekly>

const group = storedLabels('labels').refine(areShort, tooManyBytes('labels'))

const CreateMuteFields = z
  .strictObject({
    detector_id: z.string().max(100).optional().describe('Only this detector.'),
    group: group
      .optional()
      .describe(
        'Only series with these labels, which come from `group_by`, `service` and `attributes` of the scope, such as {"service": "checkout"}. At most 20, and 4,096 bytes of JSON.',
      ),
    all_detectors: z
      .boolean()
      .optional()
      .describe('True for every detector of your organisation, also those that are created later.'),
    range_start: InstantInput.optional().describe('Inclusive; now where absent.'),
    range_end: InstantInput.optional().describe('Exclusive.'),
    open_ended: z.boolean().optional().describe('True for a mute that lasts until it is deleted.'),
    weekly: Weekly.optional().describe(
      'Only at these times of the week, between `range_start` and `range_end`.',
    ),
    note: note.optional(),
  })
  .describe(
    'A mute must say what it mutes (`detector_id`, `group` with a label, or `all_detectors`) and until when (`range_end` or `open_ended`).',
  )
export const CreateMute = withOldNames(CreateMuteFields, { from: 'range_start', until: 'range_end' }).meta({
  id: 'CreateMute',
})
export type CreateMute = z.infer<typeof CreateMute>

export const Mute = z
  .object({
    id: z.string(),
    detector_id: z.string().nullable().describe('Null where it mutes every detector.'),
    group: labelMap().nullable(),
    range_start: Instant,
    range_end: Instant.nullable().describe('Null where it lasts until it is deleted.'),
    weekly: Weekly.nullable(),
    note: z.string().nullable(),
    is_active: z.boolean().describe('Whether it mutes now.'),
    created_by: z.string(),
    created_at: Instant,
    from: Instant.meta(oldNameOf('range_start')),
    until: Instant.nullable().meta(oldNameOf('range_end')),
  })
  .describe('When anomalies are recorded but not alarmed.')
  .meta({ id: 'Mute' })
export type Mute = z.infer<typeof Mute>

export const MuteParams = z.object({ mute_id: z.string().max(100) })

export const MuteListQuery = z.strictObject({
  limit: limitQuery,
  cursor: cursorQuery,
  detector_id: z.string().max(100).optional().describe('Only mutes of this detector.'),
  expired: z
    .enum(['true', 'false'])
    .default('false')
    .describe('"true": also mutes that have ended; they are kept for 90 days.'),
})
