// Wires the weights of an organisation's rows: the engine, and whether its placement is shared.

import { onBehalfOf, type TelemetryEngine } from '../telemetry/engine.ts'
import { type WeighRows, weighRows } from '../telemetry/row-weights.ts'
import type { TenancyStore } from '../tenancy/store.ts'

interface WeighingNeeds {
  readonly engine: TelemetryEngine
  readonly tenancy: TenancyStore
}

/** For work of the service itself, such as an erasure. */
export function weighingOf({ engine, tenancy }: WeighingNeeds): WeighRows {
  return async (place) => weighRows(engine, place, await tenancy.sharesPlacement(place))
}

/** For a response to the organisation; its reads take turns with those of others. */
export function weighingForAnswers({ engine, tenancy }: WeighingNeeds): WeighRows {
  return async (place) => {
    const own = onBehalfOf(engine, { tenantId: place.tenantId, kind: 'asked' })
    return weighRows(own, place, await tenancy.sharesPlacement(place))
  }
}
