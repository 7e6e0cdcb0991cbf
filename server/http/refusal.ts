// The refusal that a client receives for any error: its code, and the headers that belong to it. All
// protocols use it, whatever form their bodies have, so that none of them shows more of an unexpected error
// than another.

import type { FastifyReply } from 'fastify'
import type { ErrorCode } from '../../contract/errors.ts'
import { AppError, storageRefusal } from '../core/app-error.ts'
import { EndedToken } from '../core/ended-token.ts'
import { storageFaultOf } from '../core/storage-fault.ts'
import { challengeOf } from './authentication.ts'

/** Refusals of Fastify itself, by its codes. */
const frameworkCodes: Record<string, ErrorCode> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_EMPTY_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'bad_request',
  FST_ERR_BAD_URL: 'bad_request',
  FST_ERR_MAX_PARAM_LENGTH: 'not_found',
}

/**
 * Returns what a client may learn of any error. A fault of the disk has a code of its own; every other
 * unexpected error becomes `internal`, without its message.
 */
export function knownError(error: unknown): AppError {
  if (error instanceof AppError) return error
  if (!(error instanceof Error)) return new AppError('internal', { cause: error })
  const fault = storageFaultOf(error)
  if (fault !== null) return storageRefusal(fault, error)
  const code = 'code' in error && typeof error.code === 'string' ? frameworkCodes[error.code] : undefined
  if (code !== undefined) return new AppError(code, { cause: error })
  const status = 'statusCode' in error ? Number(error.statusCode) : 500
  return new AppError(status >= 400 && status < 500 ? 'bad_request' : 'internal', { cause: error })
}

/** Returns the refusal, or the one to send in its place where its facts may no longer be sent. */
export function currentRefusal(refusal: AppError): AppError {
  try {
    refusal.requireCurrent?.()
    return refusal
  } catch (error) {
    return knownError(error)
  }
}

/** Sets the headers of a refusal, whatever form its body has, and notes its reason. */
export function setRefusalHeaders(reply: FastifyReply, refusal: AppError): void {
  const { request } = reply
  request.refusedFor = refusal.code
  if (refusal instanceof EndedToken) request.sender = refusal.sender
  const challenge = challengeOf(refusal)
  const { retryAfterSeconds } = refusal
  if (challenge !== null) reply.header('www-authenticate', challenge)
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(retryAfterSeconds))
  // A client that sends too slowly would use the rest of the time to send what nobody reads.
  if (refusal.code === 'request_timeout') reply.header('connection', 'close')
}
