// The parameters of methods that follow local time and calendars: the time zone, the season (day or week),
// and the days that differ from their weekday. All of them are params of the detector, so that the same
// params and the same telemetry always give the same result; a calendar of another party would change with
// its next edition.

import { z } from 'zod'
import { isTimeZone } from '../values/time-zone.ts'

export const timezone = z
  .string()
  .max(64)
  .default('UTC')
  .refine(isTimeZone, {
    error: 'Give an IANA time zone such as Europe/Berlin',
    params: { type: 'value_error' },
  })
  .describe('IANA time zone of the season; it follows local time through summer time.')

/**
 * For methods that use no time of day but compare stretches of values, which shift when local
 * time changes twice a year.
 */
export const timezoneOfShapes = timezone.describe(
  'IANA time zone of the people who cause the values. No stretch across a change to or from summer time is compared, because an hour is left out or comes twice there.',
)

export const season = z
  .enum(['auto', 'hour_of_day', 'hour_of_week'])
  .default('auto')
  .describe('"auto" uses the season that has predicted this series better so far.')

/** Twenty years in a country with 18 holidays a year. */
const holidaysMax = 366

export const holidays = z
  .array(
    z
      .string()
      .max(64)
      .superRefine((text, context) => {
        const message = whyNoDay(text)
        if (message !== null) context.addIssue({ code: 'custom', message, params: { type: 'value_error' } })
      })
      // For forms; the message above is clearer than a pattern that does not match.
      .meta({ pattern: '^([0-9]{4}-)?[0-9]{2}-[0-9]{2}$', examples: ['2026-12-25', '12-25'] }),
  )
  .max(holidaysMax)
  .default([])
  .describe(
    'Holidays: they are compared with earlier holidays of the window and do not change what is expected on their weekday. Dates in the time zone, such as "2026-12-25", or "12-25" for every year. For the first one, the band covers both what is usual at this time of its weekday and of the day of the week that differs most from the others.',
  )

/** Why a text is not a valid day, as a sentence with a correction; null where it is valid. */
function whyNoDay(text: string): string | null {
  const [, year, month, day] = /^(?:(\d{4})-)?(\d{2})-(\d{2})$/.exec(text) ?? []
  if (month === undefined || day === undefined) {
    return 'Input should be a day without a time: "2026-12-25", or "12-25" for every year'
  }
  // A date without a year is valid if a leap year has it.
  const time = new Date(`${year ?? '2000'}-${month}-${day}T00:00:00Z`)
  const exists = !Number.isNaN(time.getTime()) && time.getUTCDate() === Number(day)
  return exists ? null : `There is no ${text} in the calendar; give month and day as in "2026-12-25"`
}
