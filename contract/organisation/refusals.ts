// Which requests of an organisation's own tokens were refused, on the wire: counts by reason, never anything
// of a body. They help a person who waits for the first telemetry to arrive.

import { z } from 'zod'
import { type ErrorCode, errorCatalogue } from '../errors.ts'
import { Instant } from '../values/fields.ts'

/** Reasons that are not codes of the catalogue, because their refusals have no code. */
const ownReasons = {
  invalid_input: 'The input breaks a rule; the response named every problem and its correction.',
  undecodable_body:
    'The body could not be decoded; the response named the location. Check that address, content type, encoding and compression belong together.',
} as const

export type RefusalReason = ErrorCode | keyof typeof ownReasons

/** Returns what a reason means and what to do, as a sentence for people. */
export function meaningOf(reason: RefusalReason): string {
  return reason in ownReasons
    ? ownReasons[reason as keyof typeof ownReasons]
    : errorCatalogue[reason as ErrorCode].sentence
}

/** For how long refusals are remembered. */
export const refusalHours = 24

/** How far back they are counted by minute. */
export const refusalMinutes = 60

/** Kinds of refusals of an organisation that are remembered. */
export const refusalKindsMax = 50

export const Refusal = z
  .object({
    code: z
      .string()
      .describe(
        'The code of the response, or `invalid_input` or `undecodable_body`, whose responses have none.',
      ),
    status: z.int().describe('HTTP status; for gRPC, the one that HTTP would have had.'),
    meaning: z.string().describe('What it means and what to do, for a person.'),
    protocol: z.enum(['http', 'grpc']),
    method: z.string(),
    path: z
      .string()
      .describe(
        'The path of the operation; without a query. Requests that no operation has are one kind of a token, with the path of the latest.',
      ),
    token: z.object({ id: z.string(), name: z.string() }).nullable().describe('The token that was sent.'),
    count: z.int(),
    first_at: Instant,
    last_at: Instant,
    minutes: z
      .array(z.object({ time: Instant.describe('Start of the minute.'), count: z.int() }))
      .describe(`Minutes of the last ${refusalMinutes} with refusals, oldest first.`),
  })
  .describe('Refusals of one kind: same reason, operation and token.')
  .meta({ id: 'Refusal' })
export type Refusal = z.infer<typeof Refusal>

export const RefusalList = z
  .object({
    since: Instant.describe('Nothing before this time is counted; not before the start of the service.'),
    items: z
      .array(Refusal)
      .describe(
        `Latest first, at most ${refusalKindsMax}; beyond it the oldest of the token with the most is left out.`,
      ),
  })
  .describe(
    'Refused requests with a token of your organisation, also one that has expired or was revoked. A request without a token, or with an unknown one, belongs to nobody and is not listed. Kept in memory only.',
  )
  .meta({ id: 'RefusalList' })
export type RefusalList = z.infer<typeof RefusalList>
