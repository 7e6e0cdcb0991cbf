// Wires the weights of an organisation's rows: the engine, and whether its placement is shared.

import { onBehalfOf, type TelemetryEngine } from '../telemetry/engine.ts'
import { type WeighRows, type WeighRowsFor, weighRows } from '../telemetry/row-weights.ts'
import type { TenancyStore } from '../tenancy/store.ts'

interface WeighingNeeds {
  readonly engine: TelemetryEngine
  readonly tenancy: Pick<TenancyStore, 'sharesPlacement'>
}

/** For work of the service itself, such as an erasure. */
export function weighingOf({ engine, tenancy }: WeighingNeeds): WeighRows {
  return async (place) => weighRows(engine, place, await tenancy.sharesPlacement(place))
}

/** For a response to the organisation; its reads take turns with those of others. */
export function weighingForAnswers({ engine, tenancy }: WeighingNeeds): WeighRowsFor {
  return async ({ place, share }) =>
    weighRows(onBehalfOf(engine, share), place, await tenancy.sharesPlacement(place))
}
