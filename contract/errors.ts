// The catalogue of refusals: code, HTTP status and the sentence for people. The meaning of a code never
// changes; clients decide by the code and never by the sentence. Validation errors have their own body
// (`ValidationError`), because a client needs the location and the correction more than a code.

import { z } from 'zod'

export const errorCatalogue = {
  bad_request: { status: 400, sentence: 'The request could not be read as HTTP.' },
  request_timeout: {
    status: 408,
    sentence: 'The request took too long to arrive; send it again on a new connection.',
  },
  expectation_failed: {
    status: 417,
    sentence: 'The only supported value of the Expect header is 100-continue.',
  },
  headers_too_large: { status: 431, sentence: 'The headers of the request are larger than 16 KiB in total.' },
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
    sentence: 'The access token is unknown; check that it is complete and belongs to this service.',
  },
  token_expired: { status: 401, sentence: 'The access token has expired; create a new one.' },
  token_revoked: { status: 401, sentence: 'The access token was revoked; use another one.' },
  session_ended: { status: 401, sentence: 'Your session has ended; sign in again.' },
  other_origin: {
    status: 403,
    sentence:
      'A request with a session cookie must come from a page of this service; programs send an access token.',
  },
  other_token: {
    status: 409,
    sentence:
      'This browser is signed in with another access token than the page shows. Nothing was done; reload the page.',
  },
  role_not_permitted: { status: 403, sentence: 'Your role does not permit this operation.' },
  token_line_expired: {
    status: 403,
    sentence:
      'A token that yours descends from has expired, so yours can no longer create tokens; use another one.',
  },
  not_found: { status: 404, sentence: 'Your organisation has nothing at this address.' },
  method_not_allowed: {
    status: 405,
    sentence: 'This address does not support the method; see the Allow header.',
  },
  deletion_conflict: {
    status: 409,
    sentence:
      'A full erasure of this organisation is in progress; there is nothing else to select until it ends.',
  },
  deletion_state: {
    status: 409,
    sentence: 'The status of the deletion does not allow this; read the deletion again.',
  },
  not_verified: {
    status: 409,
    sentence: 'The certificate does not exist until the deletion is verified.',
  },
  preview_stale: {
    status: 412,
    sentence: 'The preview has expired, or the telemetry has changed; check the new preview and confirm it.',
  },
  own_request: {
    status: 403,
    sentence: 'The requester of a deletion cannot approve it; another owner or admin has to.',
  },
  system_detector: { status: 409, sentence: 'This part of a system detector cannot be changed.' },
  detector_running: {
    status: 409,
    sentence: 'The detector is being evaluated right now; try again in a moment.',
  },
  held: {
    status: 409,
    sentence: 'A legal hold keeps this; it cannot be removed or changed before the hold is released.',
  },
  not_removable: {
    status: 409,
    sentence: 'The organisation cannot be removed before all its telemetry is erased.',
  },
  too_many_holds: {
    status: 409,
    sentence: 'As many legal holds are in force as you or your organisation may have; release one first.',
  },
  too_many_tokens: {
    status: 409,
    sentence: 'Your organisation has as many access tokens as it may have; revoke one first.',
  },
  name_taken: { status: 409, sentence: 'Another one with this name exists.' },
  precondition_failed: {
    status: 412,
    sentence: 'It has changed since you read it; read it again and retry with the new ETag.',
  },
  body_too_large: { status: 413, sentence: 'The body is larger than this operation accepts.' },
  unsupported_media_type: {
    status: 415,
    sentence: 'Send the body with a content type that this operation accepts.',
  },
  too_many_requests: { status: 429, sentence: 'Too many requests; retry after Retry-After.' },
  quota_exceeded: {
    status: 429,
    sentence: 'Your organisation has sent more than its quota; retry after Retry-After.',
  },
  partial_write: {
    status: 400,
    sentence: 'A part of the request was rejected; the rest is stored. Do not retry it.',
  },
  query_too_expensive: {
    status: 400,
    sentence:
      'The query exceeds its limit of time or memory; shorten the range, name a service, or group by fewer keys.',
  },
  internal: { status: 500, sentence: 'The service failed; find the request id in its log.' },
  overloaded: {
    status: 503,
    sentence: 'The service has more telemetry to commit than it can buffer; retry after Retry-After.',
  },
  erasing: {
    status: 503,
    sentence: 'An erasure of this time range is in progress; retry after Retry-After.',
  },
  storage_full: {
    status: 507,
    sentence:
      'The disk is full. Telemetry can be read, and deletions and legal holds are accepted while the reserve lasts: erase telemetry, or free space on the disk.',
  },
  storage_unavailable: {
    status: 503,
    sentence: 'The disk accepts no writes at present; retry after Retry-After.',
  },
  outcome_unknown: {
    status: 503,
    sentence:
      'The database did not say whether the change is stored. Read it again before you repeat it; a deletion can be repeated as it is.',
  },
  not_ready: { status: 503, sentence: 'The service is starting or stopping; retry after Retry-After.' },
} as const satisfies Record<string, { status: number; sentence: string }>

export type ErrorCode = keyof typeof errorCatalogue

export const ErrorBody = z
  .object({
    detail: z.string().describe('What happened and what to do, for a person.'),
    code: z.string().describe('Stable code, for a program.'),
  })
  .describe('The body of every refusal except a validation error.')
  .meta({ id: 'ErrorBody' })

export const ValidationProblem = z
  .object({
    loc: z.array(z.string()).describe('Location of the invalid input, such as ["body", "confirm"].'),
    msg: z.string().describe('What is wrong and how to correct it.'),
    type: z
      .string()
      .describe(
        'The type of error, in the vocabulary of Pydantic v2. `more_problems` is the type of a last item that counts in `ctx.more` the problems that are not shown.',
      ),
    input: z.unknown().describe('The invalid input; a long one is cut and marked as cut.'),
    ctx: z.record(z.string(), z.unknown()).describe('More facts, such as the bound that was exceeded.'),
  })
  .meta({ id: 'ValidationProblem' })
export type ValidationProblem = z.infer<typeof ValidationProblem>

export const ValidationError = z
  .object({ detail: z.array(ValidationProblem) })
  .describe('All problems of the input in one response, or the first 50 and the number of the others.')
  .meta({ id: 'ValidationError' })
