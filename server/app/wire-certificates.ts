// Wires the sources of a certificate: the record of the deletion, the signing keys, the register of backups,
// and the versions of this service and its engine.

import type { SigningKeys } from '../audit/signing.ts'
import type { BackupRegister } from '../backup/register.ts'
import type { Control } from '../control/database.ts'
import { dialectOf } from '../control/dialect.ts'
import { leftNotReached } from '../control/left-planes.ts'
import { migrationNames } from '../control/migrate.ts'
import type { Clock } from '../core/clock.ts'
import { CertificateStore } from '../deletion/certificate/store.ts'
import type { TelemetryEngine } from '../telemetry/engine.ts'
import { sql } from '../telemetry/sql.ts'
import { derivedStores } from './derived-stores.ts'

interface CertificateNeeds {
  readonly clock: Clock
  readonly control: Control
  readonly keys: SigningKeys
  readonly engine: TelemetryEngine
  readonly register: BackupRegister
  readonly certificateIssuer: string
  readonly serviceVersion: string
}

export function wireCertificates(needs: CertificateNeeds): CertificateStore {
  const { certificateIssuer, clock, control, engine, keys, register, serviceVersion } = needs
  return new CertificateStore({
    clock,
    control,
    keys,
    derivedStores: derivedStores(control).map(({ name }) => name),
    notReached: async () => [...dialectOf(control).notReached, ...(await leftNotReached(control))],
    findBackups: async (requestId) => (await register.containing([requestId])).fromBefore(requestId),
    issuer: async () => ({
      instanceSha256: certificateIssuer,
      serviceVersion,
      schemaVersion: migrationNames.at(-1) ?? '',
      engineVersion: await versionOf(engine),
    }),
  })
}

async function versionOf(engine: TelemetryEngine): Promise<string> {
  const [found] = await engine.select<{ version: string }>(sql`SELECT version() AS version`)
  if (found === undefined) throw new Error('The engine did not return its version.')
  return found.version
}
