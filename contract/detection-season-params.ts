// The parameters of methods that follow people's clocks and calendars: whose clock, by the day or by the week, and the days
// that are unlike their weekday. A detector says all of it in its own params, so that the same params and the same telemetry
// always give the same answer: a calendar looked up elsewhere would change with its next edition.

import { z } from 'zod'
import { isTimeZone } from './time-zone.ts'

export const timezone = z
  .string()
  .max(64)
  .default('UTC')
  .refine(isTimeZone, { error: 'An IANA time zone such as Europe/Berlin', params: { type: 'value_error' } })
  .describe('IANA time zone whose clock the season follows, through changes to summer time.')

/** For methods that know no clock but compare stretches of values, which people's clocks move twice a year. */
export const timezoneOfShapes = timezone.describe(
  'IANA time zone of those who cause the values. Where its clock changes to or from summer time no stretch is compared across the change: an hour is left out there, or comes twice.',
)

export const season = z
  .enum(['auto', 'hour_of_day', 'hour_of_week'])
  .default('auto')
  .describe('"auto" follows whichever of the clocks has predicted this series better so far.')

/** Twenty years of a country with a dozen and a half of them. */
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
      // For forms; the refusal above says more than that a pattern does not match.
      .meta({ pattern: '^([0-9]{4}-)?[0-9]{2}-[0-9]{2}$', examples: ['2026-12-25', '12-25'] }),
  )
  .max(holidaysMax)
  .default([])
  .describe(
    'Days that are judged by earlier holidays of the window, and do not teach what is usual on their weekday: dates of the time zone, such as "2026-12-25", or "12-25" for every year. Before there is an earlier one, the band reaches over what is usual at this hour of the weekday and of the day of the week that is most unlike the others.',
  )

/** Why a text names no day, as a sentence with the mend; null where it does. */
function whyNoDay(text: string): string | null {
  const [, year, month, day] = /^(?:(\d{4})-)?(\d{2})-(\d{2})$/.exec(text) ?? []
  if (month === undefined || day === undefined) {
    return 'Input should be a day without a time: "2026-12-25", or "12-25" for every year'
  }
  // Every date of some year is one of a leap year.
  const time = new Date(`${year ?? '2000'}-${month}-${day}T00:00:00Z`)
  const exists = !Number.isNaN(time.getTime()) && time.getUTCDate() === Number(day)
  return exists ? null : `There is no ${text} in the calendar; give month and day as in "2026-12-25"`
}
