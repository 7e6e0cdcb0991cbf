// What the reference says of refusals. Those that come from the front itself, such as for a body that is too large, are
// added to every operation here, so that no route has to remember what it never sees.

import type { FastifyContextConfig } from 'fastify'
import type { z } from 'zod'
import { ErrorBody, type ErrorCode, errorCatalogue, ValidationError } from '../../contract/errors.ts'

/** The body of a refusal, described by what the catalogue has under that status, or by these codes of it. */
export function refusalSchema(status: number, codes?: readonly ErrorCode[]): z.ZodType {
  if (status === 422) return ValidationError
  const meanings = Object.entries(errorCatalogue)
    .filter(([code, entry]) => entry.status === status && (codes?.some((one) => one === code) ?? true))
    .map(([code, { sentence }]) => `\`${code}\`: ${sentence}`)
  return ErrorBody.describe(meanings.join(' '))
}

/** Answered to whatever can't be read as a request, whichever operation it was meant for. */
const always: readonly ErrorCode[] = [
  'bad_request',
  'request_timeout',
  'expectation_failed',
  'headers_too_large',
  'internal',
]
/** A body is looked at wherever the method may have one, also where the operation wants none. */
const withBody: readonly ErrorCode[] = ['body_too_large', 'unsupported_media_type']
const guarded: readonly ErrorCode[] = [
  'unauthenticated',
  'role_not_permitted',
  'not_ready',
  'too_many_requests',
]

/** The refusals of the front for an operation, by status. */
export function frontRefusals(
  methods: readonly string[],
  { access, isUnmetered }: FastifyContextConfig,
): Record<number, z.ZodType> {
  const isOpen = access === undefined || access === 'public'
  const codes: readonly ErrorCode[] = [
    ...always,
    ...(methods.every((method) => method === 'GET' || method === 'HEAD') ? [] : withBody),
    ...(isOpen ? [] : guarded),
    ...(isOpen && isUnmetered !== true ? (['too_many_requests'] as const) : []),
  ]
  return Object.fromEntries(
    codes.map((code) => {
      const { status } = errorCatalogue[code]
      return [status, refusalSchema(status, status === 401 ? undefined : [code])]
    }),
  )
}
