// What an error of PostgreSQL or of the connection means for a caller, by its code alone: a refusal to
// repeat, a full disk, a database that can't be written or reached, or that refuses the login. Every other
// error of a statement, such as a constraint that is violated, is our own and stays what it is.

import { AppError, storageRetrySeconds } from '../../core/app-error.ts'

/** A transaction was chosen to end because of others; the whole of it is to be run again. */
const conflictCodes = new Set(['40001', '40P01'])

/** Locks, statements and connections that took too long or are too many; nothing was written. */
const busyCodes = new Set(['55P03', '57014', '53300', '53200', ...conflictCodes])

const diskFullCode = '53100'

/** The database shuts down, starts, or ended an idle session. */
const endingCodes = new Set(['25P03', '57P01', '57P02', '57P03', '57P05'])

/**
 * A standby, or a server that was the primary one until a failover. A new connection may reach the one that
 * can be written, such as by a name or a proxy that follows it.
 */
const readOnlyCode = '25006'

/** The login, or what it may do there: a wrong password, no such role or database, no right to connect. */
const loginCodes = new Set(['28000', '28P01', '3D000'])

/** Its disk fails. */
const diskCodes = new Set(['58030', '58000'])

/** The connection was never opened, or is gone. */
const connectionCodes = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'ENOENT', 'EACCES'],
  ...['EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN'],
])

/** What was asked of a connection when it failed. */
type Asked = 'connect' | 'statement' | 'commit'

/** Whether running the same transaction again is right. */
export function isConflict(error: unknown): boolean {
  return errorsIn(error).some((one) => conflictCodes.has(codeOf(one)))
}

/** Whether the connection must not go back into the pool: it has ended, or its server can not be written. */
export function endsConnection(error: unknown): boolean {
  const code = codeOf(error)
  // The driver throws a plain Error without a code where a connection ended or gave no answer in time.
  if (code === '') return error instanceof Error && error.constructor === Error
  const isLost = code.startsWith('08') || endingCodes.has(code) || connectionCodes.has(code)
  return isLost || code === readOnlyCode
}

/** Returns the refusal that an error means; the error itself where it means none. */
export function refusalOf(error: unknown, asked: Asked): unknown {
  if (!(error instanceof Error) || error instanceof AppError) return error
  const code = codeOf(error)
  if (busyCodes.has(code)) return overloaded(error)
  if (code === diskFullCode) return new AppError('storage_full', { cause: error })
  if (code === readOnlyCode) return readOnly(error)
  if (loginCodes.has(code)) return loginRefused(error)
  if (diskCodes.has(code)) return unreachable(error)
  // As a certificate that is not trusted.
  if (asked === 'connect') return unreachable(error)
  if (!endsConnection(error)) return error
  return asked === 'commit' ? outcomeUnknown(error) : unreachable(error)
}

/** Returns the refusal where all connections stay in use. */
export function overloaded(cause: unknown): AppError {
  return new AppError('overloaded', {
    sentence: 'The control plane is busy; repeat after Retry-After.',
    retryAfterSeconds: 1,
    cause,
  })
}

function unreachable(cause: unknown): AppError {
  return new AppError('storage_unavailable', {
    sentence: 'The control-plane database does not answer; repeat after Retry-After.',
    retryAfterSeconds: storageRetrySeconds,
    cause,
  })
}

/** Returns the refusal of a connection to a server that has taken over. */
export function takenOver(): AppError {
  return new AppError('storage_unavailable', {
    sentence: 'Another server has taken over the control-plane database; the service starts again.',
    retryAfterSeconds: storageRetrySeconds,
  })
}

function readOnly(cause: unknown): AppError {
  return new AppError('storage_unavailable', {
    sentence: 'The control-plane database is read-only: it is a standby, or its operator has closed it.',
    retryAfterSeconds: storageRetrySeconds,
    cause,
  })
}

/** What the server says names the role and the database, which concern the operator alone. */
function loginRefused(cause: Error): AppError {
  return new AppError('storage_unavailable', {
    sentence: 'The control-plane database refuses the login of the service; its operator has to look at it.',
    retryAfterSeconds: storageRetrySeconds,
    cause,
  })
}

function outcomeUnknown(cause: unknown): AppError {
  return new AppError('outcome_unknown', { retryAfterSeconds: storageRetrySeconds, cause })
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** An error of ours has its cause; none has more causes than this. */
const causesMax = 8

function errorsIn(error: unknown): Error[] {
  const found: Error[] = []
  for (let at = error; at instanceof Error && found.length < causesMax; at = at.cause) found.push(at)
  return found
}
