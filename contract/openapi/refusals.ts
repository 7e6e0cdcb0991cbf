// Which refusals an operation may answer. Those that come from the front of the service, such as for a body
// that is too large, follow from the declaration, so that no operation has to remember what it never sees.

import { type ErrorCode, errorCatalogue } from '../errors.ts'
import type { Operation } from '../operation.ts'

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

/**
 * Of whoever needs a token; it is looked up in the control plane, which another process
 * or the disk may hold up.
 */
const guarded: readonly ErrorCode[] = [
  'unauthenticated',
  'token_malformed',
  'token_unknown',
  'token_expired',
  'token_revoked',
  'role_not_permitted',
  'not_ready',
  'overloaded',
  'storage_unavailable',
]

/** The codes of all refusals that the operation may answer, but for input that is not valid; each once. */
function refusalCodesOf(operation: Operation): readonly ErrorCode[] {
  const { access, isUnmetered, method, protocol, refusals = [] } = operation
  const isGuarded = access !== 'public'
  const mayWrite = method !== 'GET'
  return [
    ...new Set<ErrorCode>([
      ...always,
      ...(mayWrite ? withBody : []),
      ...(isGuarded ? guarded : []),
      ...(isUnmetered === true ? [] : (['too_many_requests'] as const)),
      // Exporters drop what is answered with 507, so protocols of telemetry get a 503.
      ...(isGuarded && mayWrite && protocol === undefined ? (['storage_full'] as const) : []),
      ...refusals,
    ]),
  ]
}

/** Whether input that is not valid is answered with the problems of all of it: 422. */
export function validatesInput({ access, protocol }: Operation): boolean {
  return access !== 'public' && protocol === undefined
}

/** The codes by status, in the order of the statuses. */
export function refusalsByStatus(operation: Operation): ReadonlyMap<number, readonly ErrorCode[]> {
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of refusalCodesOf(operation)) {
    const { status } = errorCatalogue[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  return new Map([...byStatus].sort(([one], [other]) => one - other))
}

/**
 * In which form a refusal comes where an operation has one of its protocol: `ours` before it is known which
 * operation is meant, `either` where that may be so, `protocol` else.
 */
export function formOf(code: ErrorCode): 'ours' | 'either' | 'protocol' {
  if (code === 'expectation_failed' || code === 'headers_too_large') return 'ours'
  return code === 'bad_request' || code === 'request_timeout' ? 'either' : 'protocol'
}
