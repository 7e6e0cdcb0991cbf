// Wires what the removal of an organisation needs from other rooms: the fences that exclude writers, and the
// count of the verifier, which includes hidden rows.

import type { FastifyBaseLogger } from 'fastify'
import { signCheckpoint } from '../audit/export.ts'
import { chainTables, readHead } from '../audit/log.ts'
import type { SigningKeys } from '../audit/signing.ts'
import type { Config } from '../config.ts'
import type { Control } from '../control/database.ts'
import type { Clock } from '../core/clock.ts'
import { readBack } from '../deletion/attempt/verifier.ts'
import { approvalRuleOf } from '../deletion/governance/policy.ts'
import type { TelemetryEngine } from '../telemetry/engine.ts'
import type { Fences } from '../telemetry/fences.ts'
import { signals } from '../telemetry/schema/tables.ts'
import { OrganisationRemoval } from '../tenancy/removal.ts'
import type { TenancyStore } from '../tenancy/store.ts'
import { isClockInDoubt } from '../worker/clock-watch.ts'
import { flushErasedEverywhere } from './erased-flush-everywhere.ts'

interface RemovalNeeds {
  readonly config: Pick<Config, 'control' | 'dataDir'>
  readonly control: Control
  readonly keys: SigningKeys
  readonly clock: Clock
  readonly engine: TelemetryEngine
  readonly fences: Fences
  readonly tenancy: Pick<TenancyStore, 'forgetSendersOf'>
  readonly logger: Pick<FastifyBaseLogger, 'warn'>
}

const everything = { signals, range: { startNs: null, endNs: null } }

export function wireRemoval({
  config,
  control,
  clock,
  engine,
  fences,
  keys,
  logger,
  tenancy,
}: RemovalNeeds): OrganisationRemoval {
  const fence = { id: 'organisation-removal', ...everything }
  return new OrganisationRemoval({
    control,
    clock,
    isGuarded: async (open, tenantId, at) => (await approvalRuleOf(open, tenantId, at)) !== 'none',
    isClockInDoubt,
    forgetSenders: (tenantId) => tenancy.forgetSendersOf(tenantId),
    async closeToWriters(tenantId) {
      const reopen = async () => {
        await fences.publish([{ kind: 'fenced', tenantId, end: fence.id }])
      }
      try {
        await fences.publish([{ kind: 'fenced', tenantId, set: fence }])
        await fences.drain(tenantId, everything)
      } catch (error) {
        await reopen()
        throw error
      }
      return reopen
    },
    async countTelemetry(tenantId) {
      // Derived telemetry is in the control plane and is removed with the organisation.
      const target = { scope: 'all' as const, ...everything, held: [] }
      const { rowsLeft } = await readBack(engine, [], tenantId, target)
      return Object.values(rowsLeft).reduce((sum, rows) => sum + rows, 0)
    },
    async flushControl(tables, tenantId) {
      try {
        await flushErasedEverywhere({ config, control }, tables, tenantId)
      } catch (err) {
        logger.warn({ err }, 'removed rows of an organisation leave the disk with the next erasure')
      }
    },
    async signCheckpoint(chain, tenantId) {
      const end = await readHead(control, chainTables[chain], tenantId)
      return signCheckpoint({ control, clock, keys }, chain, tenantId, end)
    },
  })
}
