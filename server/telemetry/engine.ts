// The port to the telemetry engine: ClickHouse SQL in, rows out, with limited cost. The embedded engine
// (`chdb.ts`) implements it today; a ClickHouse cluster over HTTP uses the same SQL. What only an engine on
// this machine can do is in engine-files.ts. Features use a `TenantReader` instead, which can't read without
// an organisation; only ingest, the eraser and the verifier use the port directly.

import type { FastifyBaseLogger } from 'fastify'
import { AppError } from '../core/app-error.ts'
import type { ColumnSpec } from './schema/tables.ts'
import type { Sql } from './sql.ts'

/** What one statement may cost before the engine ends it; protects all other work on the machine. */
export interface StatementLimits {
  readonly maxSeconds: number
  readonly maxMemoryBytes: number
  /**
   * Bytes of the returned rows, by their size in the engine's memory; limited by memory only where absent.
   */
  readonly maxResultBytes?: number
  /**
   * Rows that are read at once, on one thread. Where absent the engine decides by the mean size of a row, and
   * so reads thousands of long rows at once where they are among short ones.
   */
  readonly maxBlockRows?: number
  /** Whether commits wait for the result, because a placement is locked meanwhile. Only without a share. */
  readonly isUnderLock?: boolean
}

/** On whose behalf something is read, so that organisations share the engine fairly. */
export interface ReadShare {
  readonly tenantId: string
  /**
   * `asked`: a client waits for the result. `background`: for a detector; it yields to what clients ask for.
   */
  readonly kind: 'asked' | 'background'
  /**
   * Aborts when the result is no longer needed: a waiting read does not begin, and a running one is killed.
   */
  readonly signal?: AbortSignal | undefined
  /**
   * Resolves when the organisation may use the event loop for the next piece of a large result; absent: in
   * the next round of the loop.
   */
  readonly turn?: (() => Promise<unknown>) | undefined
}

export interface TelemetryEngine {
  /**
   * Returns rows as objects by column name; 64-bit integers are text. A read without a share is the service's
   * own, such as an erasure's, and never waits for those of organisations. Throws EngineError or, above the
   * limits, AppError; with a share also `too_many_requests` where too many reads of the organisation wait,
   * `query_too_expensive` where a long read ended for others, and the reason of its signal.
   */
  select<T>(statement: Sql, limits?: StatementLimits, share?: ReadShare): Promise<T[]>
  /**
   * Returns the rows in the Native format (native-reader.ts, which has no dictionaries): for thousands of
   * rows that are used at once and not kept. Throws the same errors.
   */
  bytes(statement: Sql, limits?: StatementLimits, share?: ReadShare): Promise<Uint8Array>
  /** Runs a statement without rows: table definitions and removal. */
  command(statement: Sql): Promise<void>
  /**
   * Commits rows in RowBinary, the columns in the given order; a row may not span two of the buffers.
   * Resolved means committed by the engine; with an engine on this machine it is on the disk once its files
   * are synced (engine-files.ts). Rejected means unknown: an insert over several partitions may have been
   * kept in part.
   *
   * @param commit the same object for all inserts of a commit, so that the engine can serve commits in turns
   */
  insert(
    table: string,
    columns: readonly ColumnSpec[],
    rows: readonly Buffer[],
    commit?: CommitTurn,
  ): Promise<void>
  /** Waits for what runs, then closes. Idempotent. */
  close(): Promise<void>
}

/** A commit among others. */
export interface CommitTurn {
  /** Its inserts have less weight than everything else that computes, where the system allows that. */
  readonly isYielding: boolean
  /** The organisations that have rows in it. */
  readonly tenantIds: ReadonlySet<string>
}

/** The engine refused or failed. The message may quote SQL, so it is for logs, never for clients. */
export class EngineError extends Error {
  /** ClickHouse error number, where there is one. */
  readonly code: number | undefined

  constructor(message: string, options: { code?: number | undefined; cause?: unknown }) {
    super(message, { cause: options.cause })
    this.name = 'EngineError'
    this.code = options.code
  }
}

/** Whether a statement was ended because it exceeded its limits. */
export function isTooExpensive(error: unknown): error is AppError {
  return error instanceof AppError && error.code === 'query_too_expensive'
}

/** The cause of a refusal where a read ended so that others could begin, and not at its own limits. */
export class EndedForOthers extends Error {
  override readonly name = 'EndedForOthers'
}

/**
 * Whether a read was refused or ended because of other reads. That says nothing about its statement: the same
 * read may succeed later.
 */
export function isBecauseOfOthers(error: unknown): error is AppError {
  if (!(error instanceof AppError)) return false
  return error.code === 'too_many_requests' || error.cause instanceof EndedForOthers
}

/** ClickHouse: TIMEOUT_EXCEEDED, TOO_SLOW. */
const timeCodes: readonly (number | undefined)[] = [159, 160]

/** Whether a statement exceeded its time, and not its memory or the size of its result. */
export function isOutOfTime(error: Error): boolean {
  return error.cause instanceof EngineError && timeCodes.includes(error.cause.code)
}

/** ClickHouse: TOO_MANY_ROWS_OR_BYTES. */
const sizeCode = 396

/** Whether the result of a statement was larger than its limit. */
export function isResultTooLarge(error: unknown): boolean {
  return isTooExpensive(error) && error.cause instanceof EngineError && error.cause.code === sizeCode
}

/**
 * Returns the engine with this share for all reads that have none: for code that reads without a
 * `TenantReader`.
 */
export function onBehalfOf(engine: TelemetryEngine, share: ReadShare): TelemetryEngine {
  return {
    select: (statement, limits, own = share) => engine.select(statement, limits, own),
    bytes: (statement, limits, own = share) => engine.bytes(statement, limits, own),
    command: (statement) => engine.command(statement),
    insert: (...some) => engine.insert(...some),
    close: () => engine.close(),
  }
}

/** The limits of a read that names none. */
export const usualLimits: StatementLimits = { maxSeconds: 30, maxMemoryBytes: 1 << 30 }

/**
 * Returns the engine whose `select` is repeated with four times the time, until it suffices, where the time
 * of a statement is over. For a start: on a machine that others keep busy, or with very many parts, reading
 * the engine's own lists may take minutes, and the service must not stay away for that.
 */
export function withGrowingTimeouts(
  engine: TelemetryEngine,
  logger?: Pick<FastifyBaseLogger, 'warn'>,
  first: StatementLimits = usualLimits,
): TelemetryEngine {
  async function select<T>(statement: Sql, limits: StatementLimits = first, share?: ReadShare): Promise<T[]> {
    try {
      return await engine.select<T>(statement, limits, share)
    } catch (error) {
      if (!isTooExpensive(error) || !isOutOfTime(error)) throw error
      logger?.warn(
        { err: error, seconds: limits.maxSeconds },
        'the start waits for a slow read of the engine',
      )
      return select(statement, { ...limits, maxSeconds: 4 * limits.maxSeconds }, share)
    }
  }
  return {
    select,
    bytes: (...some) => engine.bytes(...some),
    command: (statement) => engine.command(statement),
    insert: (...some) => engine.insert(...some),
    close: () => engine.close(),
  }
}

/** An organisation as the engine knows it. Both values never change. */
export interface TenantPlace {
  readonly tenantId: string
  /** The partition group of this organisation, 0 to 63. */
  readonly placement: number
}
