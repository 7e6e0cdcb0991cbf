// Joins what weighs the rows of an organisation: the engine, and who lives beside it.

import { type WeighRows, weighRows } from '../telemetry/row-weights.ts'
import type { TelemetryEngine } from '../telemetry/telemetry.ts'
import type { TenancyStore } from '../tenancy/store.ts'

export function weighingOf({
  engine,
  tenancy,
}: {
  readonly engine: TelemetryEngine
  readonly tenancy: TenancyStore
}): WeighRows {
  return async (place) => weighRows(engine, place, await tenancy.sharesPlacement(place))
}
