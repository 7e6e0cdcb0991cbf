// Wires what a backup needs: the engine, the control plane, the register and the journal beside the backups.
// It runs in the deletion loop, see backup/backups.ts.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import { Backups } from '../backup/backups.ts'
import { findLackOfSpace } from '../backup/files.ts'
import type { ErasureJournal } from '../backup/journal.ts'
import { BackupError } from '../backup/manifest.ts'
import type { BackupRegister } from '../backup/register.ts'
import type { Config } from '../config.ts'
import type { Control } from '../control/database.ts'
import { dialectOf } from '../control/dialect.ts'
import { copyThrough } from '../control/file-copy.ts'
import { migrationNames } from '../control/migrate.ts'
import type { Clock } from '../core/clock.ts'
import { sideTables } from '../deletion/attempt/side-tables.ts'
import type { DiskCalls } from '../disk/disk-calls.ts'
import type { TelemetryEngine } from '../telemetry/engine.ts'
import type { LocalEngineFiles } from '../telemetry/engine-files.ts'
import type { ErasureLocks } from '../telemetry/placement-locks.ts'
import { placementCount } from '../tenancy/tenancy.ts'
import { underLease } from '../worker/lease.ts'

interface BackupNeeds {
  readonly config: Config
  readonly clock: Clock
  readonly trustedNowMs: () => Promise<number | null>
  readonly logger: FastifyBaseLogger
  readonly failpoint: (name: string) => Promise<void>
  readonly engine: TelemetryEngine
  readonly files: LocalEngineFiles
  readonly control: Control
  readonly locks: ErasureLocks
  readonly register: BackupRegister
  readonly folderSecret: string
  readonly journal: ErasureJournal
  readonly backupDisk: DiskCalls
  readonly serviceVersion: string
}

/** A copy of the control plane while a backup is taken. */
const scratchOf = ({ dataDir }: Config) => join(dataDir, 'control-copy.db')

/** Removes what a crash left of a copy. Call it before anything is served. */
export function removeLeftCopy(config: Config): Promise<void> {
  return rm(scratchOf(config), { force: true })
}

export function wireBackups(needs: BackupNeeds): Backups {
  const { config, control, engine, locks } = needs
  const everywhere = Array.from({ length: placementCount }, (_, placement) => placement)
  const controlBytes = () => dialectOf(control).sizeBytes(control)
  return new Backups({
    ...needs,
    disk: needs.backupDisk,
    backupDir: config.backupDir,
    migration: migrationNames.at(-1) ?? '',
    controlBytes,
    copyControl: async (path) => {
      const lack = await findLackOfSpace(config.dataDir, await controlBytes())
      if (lack !== null) throw new BackupError(lack)
      await copyThrough(scratchOf(config), control, path)
    },
    sideTables: () => sideTables(engine),
    whileNothingErases: (signal, work) =>
      underLease(signal, (lease) => locks.attempts.exclusively(everywhere, work, lease)),
  })
}
