// Wires up what the removal of an organisation has to know of other rooms: the fences that keep writers out,
// and the verifier's count, which is the one that believes nobody.

import type { FastifyBaseLogger } from 'fastify'
import { signCheckpoint } from '../audit/export.ts'
import { chainTables, readHead } from '../audit/log.ts'
import type { SigningKeys } from '../audit/signing.ts'
import type { Control } from '../control/database.ts'
import { dialectOf } from '../control/dialect.ts'
import type { Clock } from '../core/clock.ts'
import { readBack } from '../deletion/attempt/verifier.ts'
import type { TelemetryEngine } from '../telemetry/engine.ts'
import type { Fences } from '../telemetry/fences.ts'
import { signals } from '../telemetry/schema/tables.ts'
import { OrganisationRemoval } from '../tenancy/removal.ts'

interface RemovalNeeds {
  readonly control: Control
  readonly keys: SigningKeys
  readonly clock: Clock
  readonly engine: TelemetryEngine
  readonly fences: Fences
  readonly logger: Pick<FastifyBaseLogger, 'warn'>
}

const everything = { signals, range: { startNs: null, endNs: null } }

export function wireRemoval({
  control,
  clock,
  engine,
  fences,
  keys,
  logger,
}: RemovalNeeds): OrganisationRemoval {
  const fence = { id: 'organisation-removal', ...everything }
  return new OrganisationRemoval({
    control,
    clock,
    async closeToWriters(tenantId) {
      const reopen = async () => {
        await fences.publish([{ kind: 'fenced', tenantId, end: fence.id }])
      }
      try {
        await fences.publish([{ kind: 'fenced', tenantId, set: fence }])
        await fences.drain(tenantId)
      } catch (error) {
        await reopen()
        throw error
      }
      return reopen
    },
    async countTelemetry(tenantId) {
      // Derived telemetry lives in the control plane and goes with the organisation.
      const target = { scope: 'all' as const, ...everything, held: [] }
      const { rowsLeft } = await readBack(engine, [], tenantId, target)
      return Object.values(rowsLeft).reduce((sum, rows) => sum + rows, 0)
    },
    async flushControl() {
      try {
        await dialectOf(control).flushErased(control)
      } catch (err) {
        logger.warn({ err }, 'what belonged to a removed organisation leaves the log with the next erasure')
      }
    },
    async signCheckpoint(chain, tenantId) {
      const end = await readHead(control, chainTables[chain], tenantId)
      return signCheckpoint({ control, clock, keys }, chain, tenantId, end)
    },
  })
}
