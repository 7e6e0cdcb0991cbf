// Ensures that one process uses a data folder. The lock is an SQLite write transaction that stays open: the
// operating system releases it when the process ends in any way, so there is no stale lock file to explain or
// to delete. A command that works in the folder for a while writes its name beside the lock, so that a
// service that starts meanwhile waits for it.

import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { FastifyBaseLogger } from 'fastify'
import { z } from 'zod'
import { systemClock } from '../core/clock.ts'
import { storageFaultOf } from '../core/storage-fault.ts'
import { EngineError } from './engine.ts'

export interface FolderLock {
  close(): void
}

interface FolderLockOptions {
  /**
   * How long to wait for the process that has the lock, milliseconds. Blocks this process meanwhile. Does not
   * wait where absent.
   */
  readonly waitMs?: number
  /** The command that takes the lock, such as `lethe backup create`; null or absent for a service. */
  readonly command?: string | null
}

const commandFile = 'process.command'
const LockOwner = z.object({ pid: z.int().positive(), command: z.string() })

/**
 * Throws EngineError where another process has the folder, and the error of the disk where the disk refuses
 * the lock.
 */
export function lockFolder(
  folder: string,
  { waitMs = 0, command = null }: FolderLockOptions = {},
): FolderLock {
  const lock = new DatabaseSync(join(folder, 'process.lock'))
  try {
    // The journal is in memory: the lock must be available on a full disk too, so that an erasure can free
    // it.
    lock.exec(
      `pragma busy_timeout = ${waitMs}; pragma locking_mode = exclusive; pragma journal_mode = memory; begin exclusive`,
    )
  } catch (cause) {
    lock.close()
    if (storageFaultOf(cause) !== null) throw cause
    throw new EngineError(
      `Another process uses the data folder ${folder}. Stop it, or give this one its own folder with LETHE_DATA_DIR.`,
      { cause },
    )
  }
  if (command === null) return lock
  const path = join(folder, commandFile)
  writeFileSync(path, JSON.stringify({ pid: process.pid, command }), { mode: 0o600 })
  return {
    close() {
      rmSync(path, { force: true })
      lock.close()
    },
  }
}

/**
 * How long a command that checks whether the folder is free, or a process that is about to end, may have the
 * lock.
 */
const shortWaitMs = 2000
/** Time between two checks while a command works in the folder. */
const pollMs = 500
/**
 * A backup of much telemetry takes minutes. The supervisor sees that the service is starting, and the log
 * says why.
 */
const commandWaitMs = 15 * 60_000

/**
 * Like {@link lockFolder}, but a service waits until a command that works in the folder has ended. A command
 * waits only for short checks of the folder.
 */
export async function lockFolderToServe(
  folder: string,
  command: string | null,
  logger: Pick<FastifyBaseLogger, 'warn'> | undefined,
): Promise<FolderLock> {
  let isTold = false
  for (let waitedMs = 0; ; waitedMs += pollMs) {
    try {
      return lockFolder(folder, { waitMs: isTold ? 0 : shortWaitMs, command })
    } catch (error) {
      const lockOwner = lockOwnerOf(folder)
      const isWorthWaiting = command === null && error instanceof EngineError && waitedMs < commandWaitMs
      if (lockOwner === null || !isWorthWaiting) throw error
      if (!isTold) logger?.warn(lockOwner, 'a command works in the data folder; the start waits for its end')
      isTold = true
      await systemClock.sleep(pollMs)
    }
  }
}

/**
 * Returns the command that has the folder; null where there is none, or where it ended without giving its
 * name.
 */
function lockOwnerOf(folder: string): z.infer<typeof LockOwner> | null {
  try {
    const lockOwner = LockOwner.parse(JSON.parse(readFileSync(join(folder, commandFile), 'utf8')))
    process.kill(lockOwner.pid, 0)
    return lockOwner
  } catch {
    return null
  }
}
