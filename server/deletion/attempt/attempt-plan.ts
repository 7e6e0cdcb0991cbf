// Plans an attempt: what it is to erase of telemetry tables and derived stores, which is what legal holds do
// not keep. Where steps of an earlier attempt may have acted, it also reads what is left of what they were to
// erase. That is outside of the holds of that time: by those in force now, rows that a newer hold keeps would
// count as erased, and rows that a released one had kept as still to be erased by that step.

import type { DerivedStore } from '../../telemetry/derived-store.ts'
import type { TelemetryEngine, TenantPlace } from '../../telemetry/engine.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import type { WeighRows } from '../../telemetry/row-weights.ts'
import type { StoredDeletion } from '../requests/request.ts'
import { type PlannedStep, planErasure } from './planner.ts'
import { keptText, type LeftOutside, type StepStore } from './step-store.ts'

interface PlanDeps {
  readonly engine: TelemetryEngine
  readonly steps: StepStore
  readonly activeHolds: (tenantId: string) => Promise<readonly ActiveHold[]>
  readonly weighRows: WeighRows
  readonly derivedStores: readonly DerivedStore[]
}

interface AttemptPlan {
  /** What is to be erased now. */
  readonly plan: readonly PlannedStep[]
  /** For {@link StepStore.replan}. */
  readonly leftOutside: LeftOutside
}

export async function planAttempt(
  deps: PlanDeps,
  place: TenantPlace,
  request: StoredDeletion,
): Promise<AttemptPlan> {
  const weights = await deps.weighRows(place)
  const planOutside = async (held: readonly ActiveHold[]) => {
    const plan = await planErasure(deps.engine, place, { ...request, held }, weights)
    for (const store of deps.derivedStores) {
      const rows = await store.count(request.tenantId, request, held)
      if (rows > 0) plan.push({ store: store.name, partitionId: null, rows, bytes: 0 })
    }
    return plan
  }
  const active = await deps.activeHolds(request.tenantId)
  const plan = await planOutside(active)
  const leftOutside = new Map<string, readonly PlannedStep[]>()
  for (const { holds, text } of await deps.steps.keptHolds(request)) {
    if (text !== keptText(active)) leftOutside.set(text, await planOutside(holds))
  }
  return { plan, leftOutside }
}
