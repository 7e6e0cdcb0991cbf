// The catalogue of refusals: code, HTTP status and the sentence a person reads. A code is part of the promise
// and never changes its meaning; clients decide by code, never by sentence. Validation has a body of its own
// (`ValidationError`), because there the place and the mend matter more than a code.

import { z } from 'zod'

export const errorCatalogue = {
  bad_request: { status: 400, sentence: 'The request could not be read as HTTP.' },
  request_timeout: {
    status: 408,
    sentence: 'The request took too long to arrive; send it again on a new connection.',
  },
  expectation_failed: {
    status: 417,
    sentence: 'Of all values of the Expect header only 100-continue can be met.',
  },
  headers_too_large: { status: 431, sentence: 'The headers of the request are larger than 16 KiB together.' },
  unauthenticated: {
    status: 401,
    sentence: 'No access token was sent; send it as "Authorization: Bearer <ACCESS_TOKEN>".',
  },
  token_malformed: {
    status: 401,
    sentence:
      'The authorization cannot be read; send "Authorization: Bearer <ACCESS_TOKEN>" with one token and nothing else.',
  },
  token_unknown: {
    status: 401,
    sentence: 'The access token is not known here; check that it is whole and belongs to this service.',
  },
  token_expired: { status: 401, sentence: 'The access token has expired; create a new one.' },
  token_revoked: { status: 401, sentence: 'The access token was revoked; use another one.' },
  role_not_permitted: { status: 403, sentence: 'Your role does not permit this operation.' },
  token_line_expired: {
    status: 403,
    sentence:
      'A token that yours descends from has expired, so no token can be made with yours; use another one.',
  },
  not_found: { status: 404, sentence: 'There is nothing at this address for your organisation.' },
  method_not_allowed: {
    status: 405,
    sentence: 'This address does not answer that method; see the Allow header.',
  },
  deletion_conflict: {
    status: 409,
    sentence: 'A full erasure of this organisation is running; nothing is left to select until it ends.',
  },
  deletion_state: {
    status: 409,
    sentence: 'The deletion is in a state that does not take this; read it again.',
  },
  not_verified: {
    status: 409,
    sentence: 'There is a certificate only once the deletion is verified.',
  },
  preview_stale: {
    status: 412,
    sentence: 'What was previewed has changed or expired; look at the new preview and confirm that.',
  },
  own_request: {
    status: 403,
    sentence: 'A deletion is approved by someone else than its requester.',
  },
  system_detector: { status: 409, sentence: 'This part of a system detector cannot be changed.' },
  detector_running: {
    status: 409,
    sentence: 'The detector is being evaluated right now; try again in a moment.',
  },
  held: {
    status: 409,
    sentence: 'A legal hold keeps this; it can’t be removed or changed before the hold is released.',
  },
  not_removable: {
    status: 409,
    sentence: 'The organisation can’t be removed before all its telemetry is erased.',
  },
  too_many_holds: {
    status: 409,
    sentence: 'Your organisation has as many legal holds in force as it may have; release one first.',
  },
  too_many_tokens: {
    status: 409,
    sentence: 'Your organisation has as many access tokens as it may have; revoke one first.',
  },
  name_taken: { status: 409, sentence: 'Another one with this name exists.' },
  precondition_failed: {
    status: 412,
    sentence: 'It has changed since you read it; read it again and repeat with the new ETag.',
  },
  body_too_large: { status: 413, sentence: 'The body is larger than this operation takes.' },
  unsupported_media_type: {
    status: 415,
    sentence: 'Send the body with a content type this operation takes.',
  },
  too_many_requests: { status: 429, sentence: 'Too many at once; repeat after Retry-After.' },
  quota_exceeded: {
    status: 429,
    sentence: 'Your organisation has sent more than its quota; repeat after Retry-After.',
  },
  partial_write: {
    status: 400,
    sentence: 'A part of the request was left out; the rest is stored. Do not repeat it.',
  },
  query_too_expensive: {
    status: 400,
    sentence:
      'The query needs more time or memory than it may take; shorten the range, name a service, or group by fewer keys.',
  },
  internal: { status: 500, sentence: 'Something failed on our side; the request id names it in the log.' },
  overloaded: {
    status: 503,
    sentence: 'The service has more to commit than it can hold; repeat after Retry-After.',
  },
  erasing: {
    status: 503,
    sentence: 'An erasure covers this time range and is at work; repeat after Retry-After.',
  },
  storage_full: {
    status: 507,
    sentence:
      'The disk is full. Reading goes on, and deletions and legal holds are taken as long as the reserve lasts: erase telemetry, or free space on the disk.',
  },
  storage_unavailable: {
    status: 503,
    sentence: 'The disk takes no writes at present; repeat after Retry-After.',
  },
  not_ready: { status: 503, sentence: 'The service is starting or stopping; repeat after Retry-After.' },
} as const satisfies Record<string, { status: number; sentence: string }>

export type ErrorCode = keyof typeof errorCatalogue

export const ErrorBody = z
  .object({
    detail: z.string().describe('What happened and what to do, for a person.'),
    code: z.string().describe('Stable code, for a program.'),
  })
  .describe('Every refusal but a validation error.')
  .meta({ id: 'ErrorBody' })

export const ValidationProblem = z
  .object({
    loc: z.array(z.string()).describe('Where the faulty input is, such as ["body", "confirm"].'),
    msg: z.string().describe('What is wrong and how to mend it.'),
    type: z
      .string()
      .describe(
        'The kind of error, in the vocabulary of Pydantic v2; `more_problems` of a last one that counts what is not shown, in `ctx.more`.',
      ),
    input: z.unknown().describe('The offending input; what is long is cut, and says so.'),
    ctx: z.record(z.string(), z.unknown()).describe('Further facts, such as the bound that was crossed.'),
  })
  .meta({ id: 'ValidationProblem' })
export type ValidationProblem = z.infer<typeof ValidationProblem>

export const ValidationError = z
  .object({ detail: z.array(ValidationProblem) })
  .describe('All problems of the input in one answer, or its first 50 and how many more there are.')
  .meta({ id: 'ValidationError' })
