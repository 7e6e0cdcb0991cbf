// Every store of derived telemetry, in the order in which an erasure visits them.

import type { Control } from '../control/database.ts'
import { readActiveHolds } from '../deletion/governance/active-holds.ts'
import { DerivedAnomalies } from '../detection/anomalies/derived-anomalies.ts'
import type { DerivedStore } from '../telemetry/derived-store.ts'

export function derivedStores(control: Control): readonly DerivedStore[] {
  return [new DerivedAnomalies(control, readActiveHolds)]
}
