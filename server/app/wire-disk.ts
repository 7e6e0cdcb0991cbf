// The file systems that the service writes to, and the reserve on each. One folder of each is enough: the
// data folder has the telemetry, and control plane and backups are on the same disk unless settings say
// otherwise.

import { existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../config.ts'
import { AppError } from '../core/app-error.ts'
import type { Clock } from '../core/clock.ts'
import { faultyPathOf } from '../core/storage-fault.ts'
import { DiskCalls } from '../disk/disk-calls.ts'
import { DiskWatch, type WatchedDisk } from '../disk/disk-watch.ts'
import { Reserve } from '../disk/reserve.ts'

const mebibyte = 1024 * 1024

/**
 * The control plane's log grows to 4 MiB before it is restarted; a request and its entries take some
 * kilobytes.
 */
const controlReserveBytes = 8 * mebibyte

/** An erasure is one line of the journal, some hundred bytes. */
const journalReserveBytes = mebibyte

interface DiskNeeds {
  readonly config: Config
  readonly clock: Clock
  readonly logger: FastifyBaseLogger
}

export interface WiredDisk {
  readonly disk: DiskWatch
  /** Calls of the file system of the backups. */
  readonly backupDisk: DiskCalls
}

export function wireDisk({ config, clock, logger }: DiskNeeds): WiredDisk {
  const { backupDir, control, dataDir, reserveBytes } = config
  const controlBytes = Math.min(reserveBytes, controlReserveBytes)
  const wanted = [
    { folder: dataDir, bytes: reserveBytes, isNeeded: true },
    ...(control.kind === 'sqlite'
      ? [{ folder: dirname(control.path), bytes: controlBytes, isNeeded: true }]
      : []),
    { folder: backupDir, bytes: Math.min(reserveBytes, journalReserveBytes), isNeeded: false },
  ]
  const disks = new Map<number, WatchedDisk>()
  for (const { folder, bytes, isNeeded } of wanted) {
    const device = deviceOf(folder)
    if (disks.has(device)) continue
    disks.set(device, { reserve: new Reserve(new DiskCalls(folder), bytes), isNeeded })
  }
  const backupDisk = disks.get(deviceOf(backupDir))?.reserve.calls ?? new DiskCalls(backupDir)
  return { disk: new DiskWatch({ disks: [...disks.values()], clock, logger }), backupDisk }
}

/** Returns the file system of a folder, also of one that does not exist yet. */
function deviceOf(folder: string): number {
  return existsSync(folder) || dirname(folder) === folder ? statSync(folder).dev : deviceOf(dirname(folder))
}

/** Returns the error to show at the start where the disk is the cause; other errors unchanged. */
export async function startError(disk: DiskWatch, { dataDir }: Config, cause: unknown): Promise<unknown> {
  const fault = await disk.faultBehind(cause)
  if (fault === null) return cause
  // Backups and control plane may be on another disk than the telemetry.
  const place = faultyPathOf(cause) ?? dataDir
  const sentence =
    fault === 'full'
      ? `The service can't start, because the disk of ${place} is full and the reserve is used up. Free some megabytes there and start it again.`
      : `The service can't start, because the disk of ${place} refuses writes: it is read-only, returns errors or does not answer. The system's log names the cause.`
  return new AppError(fault === 'full' ? 'storage_full' : 'storage_unavailable', { sentence, cause })
}
