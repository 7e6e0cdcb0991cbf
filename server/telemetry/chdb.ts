// The embedded engine: chDB in this process, one data folder per process. It ensures three things that the
// library leaves to its user: a second process on the same folder is refused with a clear error, a statement
// that fails or costs too much is an error and never ends the process, and closing waits for statements that
// still run (closing during a statement aborts the whole process).

import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type ChdbResult, drainPending } from 'chdb'
import type { FastifyBaseLogger } from 'fastify'
import { AppError } from '../core/app-error.ts'
import { elapsedMs, systemClock } from '../core/clock.ts'
import { restoreFatalSignals } from '../core/process/fatal-signals.ts'
import { lowerOtherThreads, mayRaisePriority } from '../core/process/thread-priority.ts'
import { FairPool, type Turn } from '../core/turns/fair-pool.ts'
import type { LongWorkRule } from '../core/turns/long-work.ts'
import { DiskSync, forgetSyncs, syncedUntilNs } from './disk-sync.ts'
import {
  type CommitTurn,
  EngineError,
  type ReadShare,
  type StatementLimits,
  type TelemetryEngine,
  usualLimits,
  withGrowingTimeouts,
} from './engine.ts'
import { EngineFolder, type LocalEngine } from './engine-files.ts'
import { type FolderLock, lockFolderToServe } from './folder-lock.ts'
import { readLines } from './json-lines.ts'
import { createSchema } from './schema/create-schema.ts'
import type { ColumnSpec } from './schema/tables.ts'
import { writeServerSettings } from './server-settings.ts'
import { CleanSession, type StatementOptions } from './sessions/clean-session.ts'
import { longReads } from './sessions/long-reads.ts'
import { ownReaders, readers, readKinds, readsWaitingMax, writers } from './sessions/numbers.ts'
import { Pool } from './sessions/pool.ts'
import { readPauses } from './sessions/read-pauses.ts'
import { Spool } from './spool.ts'
import { render, type Sql, sql } from './sql.ts'
import { bounds, insertText, ownTurn, sessionSettings } from './statement-settings.ts'
import { removeUnsyncedParts } from './unsynced-parts.ts'

interface ChdbOptions {
  /** Folder for the engine's files; created where absent. */
  readonly folder: string
  /**
   * Memory that the engine may use for everything, bytes. Above it statements fail, and the process
   * continues.
   */
  readonly maxMemoryBytes: number
  /**
   * The only folder that `BACKUP` writes to and `RESTORE` reads; relative names in them are below it. None
   * where absent.
   */
  readonly backupFolder?: string
  /**
   * Whether and how commits are synced to the disk; off where absent, so that they may be only in the
   * operating system's cache.
   */
  readonly commitSync?: CommitSync
  /** Logs the broken parts that were found after a power loss, and reads of the start that are slow. */
  readonly logger?: Pick<FastifyBaseLogger, 'warn' | 'error'>
  /**
   * The command that opens the folder; null or absent for a service, which waits for such a command to end.
   */
  readonly command?: string | null
  /** The rules for long reads of organisations; {@link longReads} where absent. */
  readonly longReads?: LongWorkRule
  /** Limits of the first try of each read of the start; the usual ones where absent. */
  readonly startLimits?: StatementLimits
  /** Runs after the lock of the folder is taken and before its files are opened. */
  readonly beforeOpen?: () => Promise<void>
}

/**
 * `on`: one sync of the file system for all files of a commit, or `files` where the system has no such sync;
 * `files`: the engine syncs each file. docs/decisions/0022 has the cost of each.
 */
export type CommitSync = 'on' | 'files' | 'off'

const jsonRows = { format: 'JSONEachRow' }
const nativeBlocks = { format: 'Native' }

/**
 * Threads that keep their priority: those of V8, which collect the garbage of the event loop, and the
 * engine's own for its memory, to which it gives the highest.
 */
const keptThreads = new Set(['V8Worker', 'DelayedTaskSche', 'SignalInspector', 'MemoryWorker'])

/**
 * ClickHouse: TIMEOUT_EXCEEDED, MEMORY_LIMIT_EXCEEDED, TOO_MANY_ROWS, TOO_SLOW,
 * TOO_MANY_BYTES, TOO_MANY_ROWS_OR_BYTES.
 */
const costCodes = new Set([159, 241, 158, 160, 307, 396])

/** Opens the engine on its folder, and creates the telemetry tables or brings them up to date. */
export async function openChdb(options: ChdbOptions): Promise<LocalEngine> {
  mkdirSync(options.folder, { recursive: true })
  const lock = await lockFolderToServe(options.folder, options.command ?? null, options.logger)
  let engine: ChdbEngine
  try {
    await options.beforeOpen?.()
  } catch (error) {
    lock.close()
    throw error
  }
  try {
    removeTemporaryFiles(options.folder)
    engine = new ChdbEngine(options, lock)
  } catch (cause) {
    lock.close()
    throw new EngineError(`The telemetry engine could not open ${options.folder}`, { cause })
  }
  try {
    await engine.settle()
    const patient = withGrowingTimeouts(engine, options.logger, options.startLimits)
    const syncFiles = await engine.settleSyncs(patient, options)
    await createSchema(patient, { syncFiles })
    // The first table has started more threads.
    engine.lowerThreads()
  } catch (error) {
    await engine.close()
    throw error
  }
  return engine
}

/**
 * Removes files of statements and merges of a process that was killed; earlier builds let statements write
 * files.
 */
function removeTemporaryFiles(folder: string): void {
  const temporary = join(folder, 'engine', 'tmp')
  if (!existsSync(temporary)) return
  for (const name of readdirSync(temporary)) rmSync(join(temporary, name), { recursive: true, force: true })
}

/**
 * The time until a statement that still runs is killed again, each time twice as long, milliseconds. A
 * statement ends some tenths of a second after a kill where cores are short, and a kill is a statement too.
 */
const firstKillMs = 250

class ChdbEngine implements LocalEngine {
  readonly files = new EngineFolder(
    this,
    () => this.#sync(),
    () => this.#diskSync !== null,
  )
  readonly #sessions: readonly CleanSession[]
  /** Commits and commands don't wait for reads. */
  readonly #writing: Pool<CleanSession>
  /** Organisations take turns. */
  readonly #reading: FairPool<CleanSession>
  readonly #ownReading: Pool<CleanSession>
  readonly #spool: Spool
  readonly #lock: FolderLock
  #diskSync: DiskSync | null = null
  readonly #running = new Set<Promise<unknown>>()
  #reads = 0
  #closed = false

  constructor(options: ChdbOptions, lock: FolderLock) {
    this.#lock = lock
    this.#spool = new Spool(join(options.folder, 'spool'))
    const config = writeServerSettings(options)
    this.#sessions = Array.from(
      { length: writers + readers + ownReaders },
      () =>
        new CleanSession(join(options.folder, 'engine'), {
          connectionArgs: ['--async_load_databases=0', `--config-file=${config}`],
        }),
    )
    restoreFatalSignals()
    this.#writing = new Pool(this.#sessions.slice(0, writers))
    const [forOthers, forOwn] = [this.#sessions.slice(writers, writers + readers), writers + readers]
    this.#reading = new FairPool(forOthers, {
      kinds: readKinds,
      waiting: readsWaitingMax,
      nowMs: elapsedMs,
      longWork: options.longReads ?? longReads,
      ...(!mayRaisePriority() && { pauses: readPauses() }),
    })
    this.#ownReading = new Pool(this.#sessions.slice(forOwn))
  }

  /**
   * Call and await it before anything else. Afterwards the event loop has a higher priority than every thread
   * on which a statement runs.
   */
  async settle(): Promise<void> {
    for (const session of this.#sessions) await this.#guard(() => session.query(sessionSettings))
    this.lowerThreads()
  }

  /** Lowers the priority of the threads that the engine has by now. */
  lowerThreads(): void {
    lowerOtherThreads(keptThreads)
  }

  /**
   * Removes broken parts of commits that were never acknowledged, after a power loss, and chooses how later
   * commits are synced. Call and await it before any table is used. Returns true where the engine must sync
   * each file.
   */
  async settleSyncs(
    patient: TelemetryEngine,
    { folder, commitSync = 'off', logger }: ChdbOptions,
  ): Promise<boolean> {
    const marks = join(folder, 'syncs')
    const { removed, damaged } = await removeUnsyncedParts(patient, await syncedUntilNs(marks))
    if (removed.length > 0)
      logger?.warn(
        { parts: removed },
        'removed broken parts of commits that were not acknowledged, after a power loss',
      )
    if (damaged.length > 0)
      logger?.error(
        { parts: damaged },
        'telemetry on the disk is damaged: these parts can not be read and stay in detached, where they keep erasures of their placements from ending; put a backup back, or remove them',
      )
    if (commitSync === 'on') {
      this.#diskSync = new DiskSync(marks)
      try {
        await this.#diskSync.sync()
        return false
      } catch (cause) {
        logger?.warn({ err: cause }, 'this system can not sync a file system at once; each file is synced')
        await this.#diskSync.close()
        this.#diskSync = null
      }
    }
    await forgetSyncs(marks)
    return commitSync !== 'off'
  }

  async select<T>(statement: Sql, limits: StatementLimits = usualLimits, share?: ReadShare): Promise<T[]> {
    const bounded = (turn: Turn) =>
      sql`${statement} SETTINGS ${bounds(limits, turn)}, output_format_json_quote_64bit_integers = 1`
    const result = await this.#read(bounded, { ...jsonRows, ...limits }, share)
    return readLines(result.bytes(), share?.turn)
  }

  async bytes(statement: Sql, limits: StatementLimits = usualLimits, share?: ReadShare): Promise<Uint8Array> {
    const bounded = (turn: Turn) => sql`${statement} SETTINGS ${bounds(limits, turn)}`
    const result = await this.#read(bounded, { ...nativeBlocks, ...limits }, share)
    return result.bytes()
  }

  async command(statement: Sql): Promise<void> {
    await this.#run(this.#writing, statement)
  }

  async insert(
    table: string,
    columns: readonly ColumnSpec[],
    rows: readonly Buffer[],
    commit?: CommitTurn,
  ): Promise<void> {
    for (const tenantId of commit?.tenantIds ?? []) this.#reading.noteOther(tenantId)
    await this.#guard(() =>
      this.#spool.lend(rows, (path) =>
        this.#writing.lend((session) => session.query(insertText(table, columns, path, commit)), commit),
      ),
    )
  }

  async #sync(): Promise<void> {
    const disk = this.#diskSync
    if (disk !== null) await this.#guard(() => disk.sync())
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await Promise.allSettled([...this.#running])
    await this.#diskSync?.close()
    await this.#spool.close()
    for (const session of this.#sessions) session.close()
    await drainPending()
    this.#lock.close()
  }

  #run(pool: Pool<CleanSession>, statement: Sql, options: StatementOptions = jsonRows): Promise<ChdbResult> {
    return this.#guard(() => pool.lend((session) => session.query(render(statement), options)))
  }

  /** Runs a reading statement, whose text depends on whether other organisations read too. */
  #read(
    statement: (turn: Turn) => Sql,
    options: StatementOptions,
    share: ReadShare | undefined,
  ): Promise<ChdbResult> {
    if (share === undefined) return this.#run(this.#ownReading, statement(ownTurn), options)
    const { tenantId: owner, kind, signal } = share
    return this.#guard(() =>
      this.#reading.lend({ owner, kind, signal }, (session, turn) =>
        this.#readWanted(session, render(statement(turn)), options, anyOf(signal, turn.end)),
      ),
    )
  }

  /** Kills the statement where the signal aborts while it runs; then throws the reason of the signal. */
  async #readWanted(
    session: CleanSession,
    text: string,
    options: StatementOptions,
    signal: AbortSignal | undefined,
  ): Promise<ChdbResult> {
    if (signal === undefined) return session.query(text, options)
    signal.throwIfAborted()
    const mark = `/* read ${++this.#reads} */`
    const ended = new AbortController()
    const end = () => void this.#end(mark, ended.signal)
    signal.addEventListener('abort', end, { once: true })
    try {
      const result = await session.query(`${mark} ${text}`, options)
      // A statement that was killed may have returned a part of its result.
      signal.throwIfAborted()
      return result
    } catch (error) {
      signal.throwIfAborted()
      throw error
    } finally {
      ended.abort()
      signal.removeEventListener('abort', end)
    }
  }

  /**
   * Kills a statement. Repeats that until it has ended, because the engine ignores a kill of a statement that
   * it has not registered yet.
   */
  async #end(mark: string, ended: AbortSignal): Promise<void> {
    const kill = sql`KILL QUERY WHERE startsWith(query, ${mark}) ASYNC`
    for (let waitMs = firstKillMs; !ended.aborted; waitMs *= 2) {
      await this.#run(this.#writing, kill).catch(() => undefined)
      await systemClock.sleep(waitMs, ended)
    }
  }

  /** Counts the statement as running, and translates the errors of the library. */
  async #guard<T>(start: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new AppError('not_ready')
    let running: Promise<T> | undefined
    try {
      running = start()
      this.#running.add(running)
      return await running
    } catch (cause) {
      throw cause instanceof AppError || isAbort(cause) ? cause : translate(cause)
    } finally {
      if (running !== undefined) this.#running.delete(running)
    }
  }
}

function anyOf(a: AbortSignal | undefined, b: AbortSignal | undefined): AbortSignal | undefined {
  return a === undefined || b === undefined ? (a ?? b) : AbortSignal.any([a, b])
}

/** Whether the error is the reason of a signal that was aborted without a reason of its own. */
function isAbort(cause: unknown): boolean {
  return cause instanceof DOMException && cause.name === 'AbortError'
}

function translate(cause: unknown): Error {
  const code =
    cause instanceof Error && 'clickhouseCode' in cause && typeof cause.clickhouseCode === 'number'
      ? cause.clickhouseCode
      : undefined
  const error = new EngineError(cause instanceof Error ? cause.message : String(cause), { code, cause })
  return code !== undefined && costCodes.has(code)
    ? new AppError('query_too_expensive', { cause: error })
    : error
}
