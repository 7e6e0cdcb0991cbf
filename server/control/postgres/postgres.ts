// The control plane on PostgreSQL, through the driver `pg`.

import { Kysely } from 'kysely'
import type { PoolConfig } from 'pg'
import type { Control } from '../database.ts'
import { PostgresControlDialect } from './dialect.ts'
import { openPool, type PostgresLimits } from './pool.ts'

/**
 * Statements of the control plane take milliseconds, so a dozen connections serve thousands a second. A lock
 * waits as long as on SQLite; the longest statement that is not upkeep reads the whole chain of an
 * organisation.
 */
export const defaultLimits: PostgresLimits = {
  connections: 12,
  connectMs: 5_000,
  statementMs: 30_000,
  lockMs: 5_000,
  idleTransactionMs: 60_000,
}

/** Opens a control plane. The database must exist; nothing is sent to it before the first statement. */
export function openPostgres(server: PoolConfig, limits: PostgresLimits = defaultLimits): Control {
  const pool = openPool(server, limits)
  return new Kysely({ dialect: new PostgresControlDialect({ pool }, pool) })
}
