// Wires up what weighs the rows of an organisation: the engine, and who lives beside it.

import { onBehalfOf, type TelemetryEngine } from '../telemetry/engine.ts'
import { type WeighRows, weighRows } from '../telemetry/row-weights.ts'
import type { TenancyStore } from '../tenancy/store.ts'

interface WeighingNeeds {
  readonly engine: TelemetryEngine
  readonly tenancy: TenancyStore
}

/** For the service's own work, such as an erasure. */
export function weighingOf({ engine, tenancy }: WeighingNeeds): WeighRows {
  return async (place) => weighRows(engine, place, await tenancy.sharesPlacement(place))
}

/** For an answer to the organisation, by its turn. */
export function weighingForAnswers({ engine, tenancy }: WeighingNeeds): WeighRows {
  return async (place) => {
    const own = onBehalfOf(engine, { tenantId: place.tenantId, kind: 'asked' })
    return weighRows(own, place, await tenancy.sharesPlacement(place))
  }
}
