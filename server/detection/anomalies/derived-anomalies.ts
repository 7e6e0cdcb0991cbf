// Anomalies, and the versions of them that legal holds keep, as a store of derived telemetry.

import type { Control } from '../../control/database.ts'
import type { DerivedStore, ErasedPart, RunAlone } from '../../telemetry/derived-store.ts'
import type { ActiveHold, HeldPart } from '../../telemetry/held-part.ts'
import {
  countAnomaliesIn,
  countVersionsIn,
  countVisibleIn,
  eraseAnomaliesIn,
  keepersIn,
} from './anomaly-erasure.ts'
import type { ReadHolds } from './held-anomalies.ts'

export class DerivedAnomalies implements DerivedStore {
  readonly name = 'anomalies'
  readonly tables = ['anomalies', 'held_anomaly_versions']
  readonly #control: Control
  readonly #readHolds: ReadHolds

  constructor(control: Control, readHolds: ReadHolds) {
    this.#control = control
    this.#readHolds = readHolds
  }

  async preview(tenantId: string, part: ErasedPart, hidden: readonly ErasedPart[]) {
    const { inRange, learntFrom } = await countVisibleIn(this.#control, tenantId, part, hidden)
    return { anomalies: inRange, anomalies_learned_from: learntFrom }
  }

  async remove(tenantId: string, part: ErasedPart, alone: RunAlone): Promise<number> {
    const by = { readHolds: this.#readHolds, alone }
    const { inRange, learntFrom } = await eraseAnomaliesIn(this.#control, tenantId, part, by)
    return inRange + learntFrom
  }

  async count(tenantId: string, part: ErasedPart, held: readonly HeldPart[]): Promise<number> {
    const { inRange, learntFrom } = await countAnomaliesIn(this.#control, tenantId, part, held)
    // Afterwards: a version that is stored meanwhile is of an anomaly that is counted, or is counted itself.
    return inRange + learntFrom + (await countVersionsIn(this.#control, tenantId, part, held))
  }

  keepers(tenantId: string, part: ErasedPart, holds: readonly ActiveHold[]) {
    return keepersIn(this.#control, tenantId, part, holds)
  }
}
