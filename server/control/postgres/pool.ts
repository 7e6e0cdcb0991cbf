// The connections of a control plane on PostgreSQL, as Kysely takes them. Whatever goes to the database and
// comes back passes here once: values are encoded, errors become refusals, and a connection in doubt is
// closed and never used again. Every wait has a limit, and who waits for a connection takes turns.

import type { PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely'
import { type ClientBase, DatabaseError, Pool, type PoolClient, type PoolConfig } from 'pg'
import { Failover } from '../failover.ts'
import { ControlFigures } from '../figures.ts'
import { ConnectionTurns } from './connection-turns.ts'
import { endsConnection, refusalOf, takenOver } from './refusals.ts'
import { encodeParameters, valueTypes } from './values.ts'

export interface PostgresLimits {
  /** Connections of the pool at most. */
  readonly connections: number
  /** How long opening a connection may take, and how long a statement waits for a free one. */
  readonly connectMs: number
  /** How long the database works on a statement. */
  readonly statementMs: number
  /** How long a statement waits for the transaction of another. */
  readonly lockMs: number
  /** How long a transaction may be open without a statement, before the database ends it. */
  readonly idleTransactionMs: number
}

/** What follows a statement's own limit when the database does not answer at all. */
const answerGraceMs = 5_000

/** Upkeep, such as rewriting a table, takes the time that it takes. */
const upkeepMs = 24 * 3_600_000

/** A connection without use is closed after this time, so that few remain after a peak. */
const idleMs = 60_000

/** The protocol counts the values of a statement in 16 bits. */
const parametersMax = 65_535

/** Ends the limit of statements on a connection, for upkeep; {@link endUpkeep} sets it again. */
export const beginUpkeep = 'set statement_timeout = 0'
export const endUpkeep = 'reset statement_timeout'

/**
 * What a role or a database may set differently: doubles are written with all their digits, a transaction
 * reads what others have committed, and a commit is on the disk before it is acknowledged.
 */
const sessionStatement = `select set_config('extra_float_digits', '1', false),
  set_config('default_transaction_isolation', 'read committed', false),
  case when current_setting('synchronous_commit') in ('off', 'local')
    then set_config('synchronous_commit', 'on', false) end`

/**
 * The timeline that a primary writes: each promotion of a standby begins another. Null on a standby
 * (https://www.postgresql.org/docs/current/continuous-archiving.html#BACKUP-TIMELINES).
 */
const timelineStatement = `select case when not pg_is_in_recovery()
  then substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) end as timeline`

/** Errors of a server that is like PostgreSQL and has another log, or lets nobody ask for it. */
const noTimelineCodes = new Set(['0A000', '42501', '42883'])

async function readTimeline(client: ClientBase): Promise<string | null> {
  try {
    const { rows } = await client.query<{ timeline: string | null }>(timelineStatement)
    return rows[0]?.timeline ?? null
  } catch (error) {
    if (error instanceof DatabaseError && noTimelineCodes.has(error.code ?? '')) return null
    throw error
  }
}

/** Opens no connection until one is needed. */
export function openPool(server: PoolConfig, limits: PostgresLimits): GuardedPool {
  const failover = new Failover()
  return new GuardedPool(
    new Pool({
      ...server,
      application_name: 'lethe',
      types: valueTypes,
      max: limits.connections,
      idleTimeoutMillis: idleMs,
      connectionTimeoutMillis: limits.connectMs,
      statement_timeout: limits.statementMs,
      query_timeout: limits.statementMs + answerGraceMs,
      lock_timeout: limits.lockMs,
      idle_in_transaction_session_timeout: limits.idleTransactionMs,
      keepAlive: true,
      onConnect: async (client) => {
        await client.query(sessionStatement)
        if (!failover.isSame(await readTimeline(client))) throw takenOver()
      },
    }),
    new ConnectionTurns(limits.connections, limits.connectMs),
    failover,
  )
}

class GuardedPool implements PostgresPool {
  readonly #pool: Pool
  readonly #turns: ConnectionTurns
  readonly options = {}
  readonly figures: ControlFigures
  readonly failover: Failover

  constructor(pool: Pool, turns: ConnectionTurns, failover: Failover) {
    this.#pool = pool
    this.#turns = turns
    this.failover = failover
    this.figures = new ControlFigures(() => ({ open: pool.totalCount, waiting: turns.waiting }))
    // The pool forgets a connection that fails; whoever uses it gets the error from its statement.
    const ignored = () => {}
    pool.on('error', ignored)
    pool.on('connect', (client) => client.on('error', ignored))
  }

  async connect(): Promise<PostgresPoolClient> {
    let endTurn = () => {}
    try {
      endTurn = await this.#turns.begin()
      const client = new GuardedClient(await this.#pool.connect(), this.figures, endTurn)
      // Cursors, which Kysely could ask for too, are never opened.
      return client as unknown as PostgresPoolClient
    } catch (error) {
      endTurn()
      const refusal = refusalOf(error, 'connect')
      this.figures.countFailure(refusal)
      throw refusal
    }
  }

  end(): Promise<void> {
    return this.#pool.end()
  }
}

function nothing<R>(): PostgresQueryResult<R> {
  return { command: 'ROLLBACK', rowCount: 0, rows: [] }
}

class GuardedClient {
  readonly #client: PoolClient
  readonly #figures: ControlFigures
  readonly #endTurn: () => void
  #isBroken = false
  #isUpkeep = false

  constructor(client: PoolClient, figures: ControlFigures, endTurn: () => void) {
    this.#client = client
    this.#figures = figures
    this.#endTurn = endTurn
  }

  async query<R>(text: string, values: readonly unknown[]): Promise<PostgresQueryResult<R>> {
    if (values.length > parametersMax) {
      throw new RangeError(`A statement has ${values.length} values; PostgreSQL takes ${parametersMax}.`)
    }
    if (text === beginUpkeep) this.#isUpkeep = true
    // The server rolls back what a lost connection had begun; an error here would hide the one before it.
    if (text === 'rollback' && this.#isBroken) return nothing()
    this.#figures.countStatement()
    try {
      const result = await this.#client.query({
        text,
        values: encodeParameters(values),
        ...(this.#isUpkeep && { query_timeout: upkeepMs }),
      })
      if (text === endUpkeep) this.#isUpkeep = false
      return result as unknown as PostgresQueryResult<R>
    } catch (error) {
      this.#isBroken ||= endsConnection(error)
      const refusal = refusalOf(error, text === 'commit' ? 'commit' : 'statement')
      this.#figures.countFailure(refusal)
      throw refusal
    }
  }

  release(isDiscarded = false): void {
    this.#client.release(isDiscarded || this.#isBroken || this.#isUpkeep)
    this.#endTurn()
  }
}
