// What only an engine on this machine can do, beside the port (engine.ts): its files are in a folder that
// this process lists and syncs, and it writes copies of itself to files. An engine on another machine has
// none of this. A room that needs it receives it from the wiring, and opens the engine's folder in no other
// way.

import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../core/app-error.ts'
import type { Clock } from '../core/clock.ts'
import { EngineError, type TelemetryEngine } from './engine.ts'
import { Bound, raw, sql } from './sql.ts'

export interface LocalEngineFiles {
  /**
   * Resolves when everything that was inserted before survives a crash of the machine, where commits are
   * synced at all. Rejected means that it may not: it must not be acknowledged.
   */
  sync(): Promise<void>
  /**
   * Whether {@link sync} syncs all that was written, so that the engine need not sync each file of an insert.
   */
  readonly syncsAtOnce: boolean
  /**
   * Returns the folder that contains the parts, by table. Throws EngineError where there is no such table.
   */
  tableFolders(tables: readonly string[]): Promise<ReadonlyMap<string, string>>
  /** Returns the names of what is in the tables' folders. Throws EngineError where there is no such table. */
  partNames(tables: readonly string[]): Promise<ReadonlyMap<string, PartNames>>
  /** Syncs the folders of the tables' parts, so that parts that were removed from them stay removed. */
  syncFolders(tables: readonly string[]): Promise<void>
  /**
   * Copies all tables to `path` below the backup folder, as of one moment for each table. `id` names the copy
   * among those that the engine lists. Throws EngineError, after the engine has ended the copy, when `signal`
   * aborts.
   */
  copyTo(path: string, id: string, clock: Pick<Clock, 'sleep'>, signal: AbortSignal): Promise<void>
  /**
   * Restores all tables of a copy into an engine that has none of them: those of telemetry, and the marks of
   * completed erasures.
   */
  restoreFrom(path: string): Promise<void>
}

/** Names of everything in the folder of a table. */
interface PartNames {
  readonly parts: readonly string[]
  /** Parts that the engine does not read. A name may start with the reason and `_`. */
  readonly detached: readonly string[]
}

/** An engine whose files are on this machine. */
export interface LocalEngine extends TelemetryEngine {
  readonly files: LocalEngineFiles
}

/** Pause between two checks whether a copy is complete. */
const copyPollMs = 50

/** The files of an engine that runs in this process. */
export class EngineFolder implements LocalEngineFiles {
  readonly #engine: Pick<TelemetryEngine, 'command' | 'select'>
  readonly sync: () => Promise<void>
  readonly #syncsAtOnce: () => boolean
  /** The folders that were read, by table. A table keeps its folder as long as it exists. */
  readonly #folders = new Map<string, string>()

  /** @param syncsAtOnce known only once the engine has started */
  constructor(
    engine: Pick<TelemetryEngine, 'command' | 'select'>,
    sync: () => Promise<void>,
    syncsAtOnce: () => boolean,
  ) {
    this.#engine = engine
    this.sync = sync
    this.#syncsAtOnce = syncsAtOnce
  }

  get syncsAtOnce(): boolean {
    return this.#syncsAtOnce()
  }

  async tableFolders(tables: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const unknown = tables.filter((table) => !this.#folders.has(table))
    if (unknown.length > 0) await this.#readFolders(unknown)
    return new Map(
      tables.map((table) => {
        const path = this.#folders.get(table)
        if (path === undefined)
          throw new EngineError(`The telemetry engine has no folder of a table ${table}`, {})
        return [table, path]
      }),
    )
  }

  async #readFolders(tables: readonly string[]): Promise<void> {
    const rows = await this.#engine.select<{ name: string; data_paths: string[] }>(
      sql`select name, data_paths from system.tables
        where database = currentDatabase() and name in ${new Bound('Array(String)', tables)}`,
    )
    for (const { name, data_paths } of rows) {
      const [path] = data_paths
      if (path !== undefined) this.#folders.set(name, path)
    }
  }

  async partNames(tables: readonly string[]): Promise<ReadonlyMap<string, PartNames>> {
    const named = [...(await this.tableFolders(tables))].map(async ([table, folder]) => {
      const [parts = [], detached = []] = await Promise.all(withDetached(folder).map((path) => readdir(path)))
      return [table, { parts, detached }] as const
    })
    return new Map(await Promise.all(named))
  }

  async syncFolders(tables: readonly string[]): Promise<void> {
    const folders = [...(await this.tableFolders(tables)).values()].flatMap(withDetached)
    for (const folder of folders) {
      const handle = await open(folder, 'r')
      try {
        await handle.sync()
      } finally {
        await handle.close()
      }
    }
  }

  /**
   * In the background, because waiting for a BACKUP blocks every other statement (docs/backup.md has the
   * measurement). Parts that a merge replaces meanwhile stay until they are copied. A read of the status
   * that fails is repeated: an error from here says that the engine no longer writes.
   */
  async copyTo(path: string, id: string, clock: Pick<Clock, 'sleep'>, signal: AbortSignal): Promise<void> {
    const [file, name] = [checkedName(path), checkedName(id)]
    await this.#engine.command(
      raw(`BACKUP DATABASE default TO File('${file}') SETTINGS id = '${name}' ASYNC`),
    )
    for (;;) {
      const copy = await this.#findCopy(id)
      if (copy?.status === 'BACKUP_CREATED') return
      if (copy !== null && copy.status !== 'CREATING_BACKUP') throw new EngineError(firstLine(copy.error), {})
      if (copy !== null && signal.aborted) await this.#kill(copy)
      await clock.sleep(copyPollMs)
    }
  }

  async restoreFrom(path: string): Promise<void> {
    this.#folders.clear()
    await this.#engine.command(raw(`RESTORE DATABASE default FROM File('${checkedName(path)}')`))
  }

  /** Returns null where the status can't be read now. */
  async #findCopy(id: string): Promise<RunningCopy | null> {
    const found = await this.#engine
      .select<RunningCopy>(sql`SELECT status, error, query_id FROM system.backups WHERE id = ${id}`)
      .catch(throwIfClosed)
    if (found === null) return null
    const [copy] = found
    if (copy === undefined) throw new EngineError('The telemetry engine does not know its copy', {})
    return copy
  }

  /**
   * Asks the engine to end a copy. Does not wait for the end, which never comes while the disk of the copy
   * does not answer: a statement that waits blocks every other one.
   */
  async #kill({ query_id }: RunningCopy): Promise<void> {
    await this.#engine.command(sql`KILL QUERY WHERE query_id = ${query_id} ASYNC`).catch(throwIfClosed)
  }
}

/** Returns null for an error that may be gone at the next try. */
function throwIfClosed(error: unknown): null {
  if (error instanceof AppError && error.code === 'not_ready') throw error
  return null
}

interface RunningCopy {
  readonly status: string
  readonly error: string
  readonly query_id: string
}

/** Returns the folder of a table and that of its detached parts. */
const withDetached = (folder: string) => [folder, join(folder, 'detached')]

/** The name becomes part of a statement that can't have bound values. */
function checkedName(name: string): string {
  if (!/^[\w./]+$/.test(name)) throw new EngineError(`Not a name of a copy: ${name}`, {})
  return name
}

/** Errors of the engine have a stack trace after the first line. */
function firstLine(error: string): string {
  return error.split(/\n|, Stack trace/)[0] ?? error
}
