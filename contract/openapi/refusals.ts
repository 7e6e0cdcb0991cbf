// Which refusals an operation may return. Those of the HTTP front, such as for a body that is too large,
// follow from the declaration, so no operation has to list them.

import { type ErrorCode, errorCatalogue } from '../errors.ts'
import type { Operation } from '../operation.ts'

/** Returned where the request cannot be read, whichever operation it was for. */
const always: readonly ErrorCode[] = [
  'bad_request',
  'request_timeout',
  'expectation_failed',
  'headers_too_large',
  'internal',
]

/** A body is checked wherever the method may have one, also where the operation expects none. */
const withBody: readonly ErrorCode[] = ['body_too_large', 'unsupported_media_type']

/**
 * Refusals of operations that need a token. The token is looked up in the control plane, which another
 * process or the disk may block.
 */
const guarded: readonly ErrorCode[] = [
  'unauthenticated',
  'token_malformed',
  'token_unknown',
  'token_expired',
  'token_revoked',
  'session_ended',
  'other_origin',
  'role_not_permitted',
  'not_ready',
  'overloaded',
  'storage_unavailable',
]

/**
 * Returns the codes of all refusals that the operation may return, each once, without those of invalid input.
 */
function refusalCodesOf(operation: Operation): readonly ErrorCode[] {
  const { access, isUnmetered, method, protocol, refusals = [], takesBasic, takesSignInCode } = operation
  const isGuarded = access !== 'public'
  const takesCookie = isGuarded && takesBasic !== true && takesSignInCode !== true
  const mayWrite = method !== 'GET'
  return [
    ...new Set<ErrorCode>([
      ...always,
      ...(mayWrite ? withBody : []),
      ...(isGuarded ? guarded : []),
      ...(takesCookie ? (['other_token'] as const) : []),
      ...(isUnmetered === true ? [] : (['too_many_requests'] as const)),
      // Exporters drop data after a 507, so the protocols of telemetry return a 503.
      ...(isGuarded && mayWrite && protocol === undefined
        ? (['storage_full', 'outcome_unknown'] as const)
        : []),
      ...refusals,
    ]),
  ]
}

/** Whether invalid input is refused with 422 and all its problems. */
export function validatesInput({ access, protocol }: Operation): boolean {
  return access !== 'public' && protocol === undefined
}

/** Returns the codes per status, ordered by status. */
export function refusalsByStatus(operation: Operation): ReadonlyMap<number, readonly ErrorCode[]> {
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of refusalCodesOf(operation)) {
    const { status } = errorCatalogue[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  return new Map([...byStatus].sort(([one], [other]) => one - other))
}

/**
 * Returns the form of a refusal for an operation with its own protocol: `ours` where the refusal comes before
 * the operation is known, `either` where that depends, `protocol` otherwise.
 */
export function formOf(code: ErrorCode): 'ours' | 'either' | 'protocol' {
  if (code === 'expectation_failed' || code === 'headers_too_large') return 'ours'
  return code === 'bad_request' || code === 'request_timeout' ? 'either' : 'protocol'
}
