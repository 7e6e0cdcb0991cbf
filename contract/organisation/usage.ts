// What an organisation stores, what it has sent, and what was refused, on the wire.

import { z } from 'zod'
import { DeletionStatus, SignalName } from '../deletion/requests.ts'
import { cursorQuery, Instant, limitQuery, pageOf, queryInt } from '../values/fields.ts'
import { MomentInput, momentForms } from '../values/instant.ts'

const Amount = {
  rows: z.int(),
  bytes: z
    .int()
    .describe(
      'Compressed bytes on disk; where organisations share a placement, an estimate from your own rows.',
    ),
}

const Day = z.string().meta({ format: 'date' })

/** What telemetry of whole days adds, so that an unfinished day doesn't look like a decrease. */
const Growth = {
  last_7_days: z.object(Amount).describe('With a time in the 7 whole UTC days before today.'),
  previous_7_days: z.object(Amount).describe('With a time in the 7 UTC days before those.'),
}

const KeptFor = z
  .object({
    days: z.int().nullable().describe('Whole UTC days that are kept; null without a limit.'),
    erases_before: Instant.nullable().describe(
      'Telemetry before this time is erased, unless a legal hold keeps it; null without a limit.',
    ),
    last_erasure: z
      .object({
        request_id: z.string(),
        status: DeletionStatus,
        range_end: Instant.nullable(),
        created_at: Instant,
        finished_at: Instant.nullable(),
      })
      .nullable()
      .describe(
        'The newest deletion of this signal that retention has requested; null where there was none.',
      ),
  })
  .describe('The retention rule of the signal beside what it has done.')

export const StorageUsage = z
  .object({
    tenant_id: z.string(),
    rows: z.int(),
    bytes: z.int(),
    oldest: Instant.nullable(),
    newest: Instant.nullable(),
    ...Growth,
    signals: z.array(
      z.object({
        signal: SignalName,
        ...Amount,
        oldest: Instant.nullable(),
        newest: Instant.nullable(),
        ...Growth,
        retention: KeptFor,
        days: z.array(z.object({ day: Day, ...Amount })).describe('UTC days with telemetry, oldest first.'),
      }),
    ),
  })
  .meta({ id: 'StorageUsage' })

/** Days times services: a response has three signals for each. */
export const serviceDaysMax = 10_000

export const ServiceStorageQuery = z.strictObject({
  range_start: MomentInput.optional().describe(
    `The UTC days of \`days\` begin with the one that has this time; 30 days before the last one where absent. ${momentForms}`,
  ),
  range_end: MomentInput.optional().describe(
    `Exclusive: the last day is the one before this time; today where absent. ${momentForms}`,
  ),
  limit: queryInt({
    min: 1,
    max: 100,
    fallback: 20,
    describe: `Services; the others are added up. Services times days are at most ${serviceDaysMax}.`,
  }),
})

export const ServiceStorage = z
  .object({
    tenant_id: z.string(),
    range_start: Instant.describe('Start of the first day of `days`.'),
    range_end: Instant.describe('End of the last day of `days`.'),
    services: z
      .array(
        z.object({
          service: z.string().describe('Empty for telemetry without `service.name`.'),
          ...Amount,
          newest: Instant,
          ...Growth,
          signals: z
            .array(
              z.object({
                signal: SignalName,
                ...Amount,
                oldest: Instant,
                newest: Instant,
                ...Growth,
                days: z
                  .array(z.object({ day: Day, ...Amount }))
                  .describe('UTC days of the range with telemetry, oldest first.'),
              }),
            )
            .describe('Signals with telemetry.'),
        }),
      )
      .describe('Most bytes first. Amounts are of everything that is stored, not only of the range.'),
    others: z
      .object({ services: z.int(), ...Amount })
      .describe('Everything that belongs to no listed service.'),
  })
  .describe(
    'The bytes of a week are divided among services and days by rows, and among services also by the lengths of their rows on some days.',
  )
  .meta({ id: 'ServiceStorage' })

export const ErasedTimeQuery = z.strictObject({
  range_start: MomentInput.optional().describe(`Only time that ends after this instant. ${momentForms}`),
  range_end: MomentInput.optional().describe(`Only time that starts before this instant. ${momentForms}`),
  limit: limitQuery,
  cursor: cursorQuery,
})

export const ErasedTime = z
  .object({
    request_id: z.string().describe('The deletion that selects it.'),
    state: z
      .enum(['hidden', 'erased'])
      .describe('`hidden`: not verified yet; nobody can read it. `erased`: verified.'),
    signals: z.array(SignalName),
    range_start: Instant.nullable().describe('Inclusive; null where it has no start.'),
    range_end: Instant.nullable().describe('Exclusive; null where it has no end.'),
  })
  .describe(
    'Time of which charts and detectors know nothing, because a deletion hides it or has erased it. Erased time ends when its deletion was completed; what arrived for it later is shown.',
  )
  .meta({ id: 'ErasedTime' })
export type ErasedTime = z.infer<typeof ErasedTime>
export const ErasedTimePage = pageOf(ErasedTime)

const IngestCounts = {
  day: Day.describe('UTC day.'),
  bytes: z.int().describe('Bytes of accepted request bodies, uncompressed.'),
  rows_accepted: z.int().describe('Points, log records and spans that are committed.'),
  rows_rejected: z.int().describe('Those rejected from otherwise accepted requests.'),
  requests_refused: z.int().describe('Whole requests that a quota refused.'),
}

export const IngestUsage = z
  .object({
    tenant_id: z.string(),
    limits: z
      .object({
        rows_per_second: z.int().nullable(),
        burst_rows: z.int().nullable().describe('Rows that may come at once after a pause.'),
        bytes_per_day: z.int().nullable(),
      })
      .describe('The quota that the operator has set; null where there is no limit.'),
    today: z.object(IngestCounts),
    resets_at: Instant.describe('When the next UTC day begins.'),
    days: z.array(z.object(IngestCounts)).describe('Days with telemetry, newest first, at most 31.'),
  })
  .describe('What your organisation has sent, and what it may send.')
  .meta({ id: 'IngestUsage' })
