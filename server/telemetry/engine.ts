// The port to the telemetry engine: ClickHouse SQL in, rows out, with bounded cost. The embedded engine
// (`chdb.ts`) implements it today; a ClickHouse cluster over HTTP speaks the same SQL. What only an engine on
// this machine can do is in engine-files.ts. Features don't hold this port but a `TenantReader`, which can't
// ask without naming its organisation; only ingest, the eraser and the verifier work below it.

import { AppError } from '../core/app-error.ts'
import type { ColumnSpec } from './schema/tables.ts'
import type { Sql } from './sql.ts'

/** What one statement may cost before the engine ends it; protects everyone else on the machine. */
export interface StatementLimits {
  readonly maxSeconds: number
  readonly maxMemoryBytes: number
  /**
   * Bytes of the rows that are answered, as they lie in the engine's memory; as many as
   * memory allows where absent.
   */
  readonly maxResultBytes?: number
  /**
   * Rows that are read at once, on one thread. Where absent the engine goes by the mean size of a row, and so
   * takes thousands of long rows at once where they lie among short ones.
   */
  readonly maxBlockRows?: number
}

/** On whose behalf something is read, so that organisations share the engine fairly. */
export interface ReadShare {
  readonly tenantId: string
  /**
   * `asked`: somebody waits for the answer. `background`: it is for a detector, and gives way to what is
   * asked.
   */
  readonly kind: 'asked' | 'background'
  /**
   * Aborts when nobody wants the answer any more: a read that waits is not begun, and one under way is ended.
   */
  readonly signal?: AbortSignal | undefined
}

export interface TelemetryEngine {
  /**
   * Rows as objects by column name; 64-bit integers come as text. A read without a share is the service's
   * own, such as an erasure's, and never waits behind those of organisations. Throws EngineError or, on
   * crossed limits, AppError; with a share `too_many_requests` where too much of the organisation waits, and
   * the reason of its signal.
   */
  select<T>(statement: Sql, limits?: StatementLimits, share?: ReadShare): Promise<T[]>
  /**
   * The rows in the Native format (native-reader.ts, which has no dictionaries): for thousands of rows that
   * nobody keeps. Throws the same.
   */
  bytes(statement: Sql, limits?: StatementLimits, share?: ReadShare): Promise<Uint8Array>
  /** A statement without rows: table definitions and removal. */
  command(statement: Sql): Promise<void>
  /**
   * Commits rows in RowBinary, the columns in the given order; a row may not span two of the buffers.
   * Resolved means committed by the engine; with an engine on this machine it is on the disk once its files
   * are synced (engine-files.ts). Rejected means unknown: an insert over several partitions may have been
   * kept in part.
   */
  insert(table: string, columns: readonly ColumnSpec[], rows: readonly Buffer[]): Promise<void>
  /** Waits for what runs, then closes. Idempotent. */
  close(): Promise<void>
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

/** Whether a statement was ended because it crossed its limits. */
export function isTooExpensive(error: unknown): error is AppError {
  return error instanceof AppError && error.code === 'query_too_expensive'
}

/** ClickHouse: TIMEOUT_EXCEEDED, TOO_SLOW. */
const timeCodes: readonly (number | undefined)[] = [159, 160]

/** Whether what a statement lacked was time, and not memory or room in its answer. */
export function isOutOfTime(error: Error): boolean {
  return error.cause instanceof EngineError && timeCodes.includes(error.cause.code)
}

/** The engine whose reads without a share are part of this one: for what reads below a `TenantReader`. */
export function onBehalfOf(engine: TelemetryEngine, share: ReadShare): TelemetryEngine {
  return {
    select: (statement, limits, own = share) => engine.select(statement, limits, own),
    bytes: (statement, limits, own = share) => engine.bytes(statement, limits, own),
    command: (statement) => engine.command(statement),
    insert: (table, columns, rows) => engine.insert(table, columns, rows),
    close: () => engine.close(),
  }
}

/** An organisation as the engine knows it. Both never change. */
export interface TenantPlace {
  readonly tenantId: string
  /** The partition group of this organisation, 0 to 63. */
  readonly placement: number
}
