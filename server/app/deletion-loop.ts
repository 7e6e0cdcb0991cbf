// The loop that takes backups and carries out erasures, one after the other, also on a full disk.

import type { FastifyBaseLogger } from 'fastify'
import type { Backups } from '../backup/backups.ts'
import type { Clock } from '../core/clock.ts'
import type { DiskWatch } from '../disk/disk-watch.ts'
import type { Leases } from '../worker/lease.ts'
import { Periodic } from '../worker/periodic.ts'
import type { WiredDeletion } from './wire-deletion.ts'

const deletionLoopTimes = {
  name: 'deletion',
  /** Interval of the loop; a new request nudges it. */
  everyMs: 1000,
  /** Limits how long another process waits for one that ended without releasing the lease. */
  leaseMs: 60_000,
}

interface DeletionLoopNeeds {
  readonly clock: Clock
  readonly trustedNowMs: () => Promise<number | null>
  readonly logger: FastifyBaseLogger
  readonly disk: DiskWatch
  readonly leases: Leases
  readonly backups: Backups
  readonly deletion: WiredDeletion
}

/** Creates the loop that runs erasures. It also works on a full disk, with the reserve. */
export function createDeletionLoop(needs: DeletionLoopNeeds) {
  const { clock, trustedNowMs, logger, disk, leases, backups, deletion } = needs
  const round = (signal: AbortSignal) =>
    disk.withReserveReady(deletion.isDue, async () => {
      await trustedNowMs()
      // First, so that no erasure acts while a backup is taken. Not beside attempts: a backup needs every
      // placement without an attempt, and would keep those that are free until the longest attempt has ended.
      await backups.round(signal)
      await deletion.round(signal)
    })
  const take = (name: string, ms: number) =>
    disk
      .withReserve(() => leases.take(name, ms))
      .catch(async (error: unknown) => {
        // This writes once a second, so its errors show the state of the disk.
        await disk.faultBehind(error)
        throw error
      })
  const spared = { take, release: (name: string) => leases.release(name) }
  return { round, deletionLoop: new Periodic({ ...deletionLoopTimes, clock, leases: spared, logger, round }) }
}
