// Wires what a backup needs: the engine, the control plane, the register and the journal beside the backups.
// It runs in the deletion loop, see backup/backups.ts.

import type { FastifyBaseLogger } from 'fastify'
import { Backups } from '../backup/backups.ts'
import type { ErasureJournal } from '../backup/journal.ts'
import type { BackupRegister } from '../backup/register.ts'
import type { Config } from '../config.ts'
import type { Control } from '../control/database.ts'
import { dialectOf } from '../control/dialect.ts'
import { copyToFile } from '../control/file-copy.ts'
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

export function wireBackups(needs: BackupNeeds): Backups {
  const { config, control, engine, locks } = needs
  const everywhere = Array.from({ length: placementCount }, (_, placement) => placement)
  return new Backups({
    ...needs,
    disk: needs.backupDisk,
    backupDir: config.backupDir,
    migration: migrationNames.at(-1) ?? '',
    controlBytes: () => dialectOf(control).sizeBytes(control),
    copyControl: (path) => copyToFile(control, path),
    sideTables: () => sideTables(engine),
    whileNothingErases: (signal, work) =>
      underLease(signal, (lease) => locks.attempts.exclusively(everywhere, work, lease)),
  })
}
