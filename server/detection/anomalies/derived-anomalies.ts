// Anomalies, and the versions of them that legal holds keep, as a store of derived telemetry.

import type { Control } from '../../control/database.ts'
import { lock } from '../../control/dialect.ts'
import { transact } from '../../control/transaction.ts'
import type { DerivedStore, ErasedPart } from '../../telemetry/derived-store.ts'
import type { ActiveHold, HeldPart } from '../../telemetry/held-part.ts'
import {
  countAnomaliesIn,
  countVersionsIn,
  keepersIn,
  redactAnomaliesIn,
  removeAnomaliesIn,
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

  async preview(tenantId: string, { range, signals }: ErasedPart) {
    const { inRange, learntFrom } = await countAnomaliesIn(this.#control, tenantId, signals, range)
    return { anomalies: inRange, anomalies_learned_from: learntFrom }
  }

  remove(tenantId: string, { range, signals }: ErasedPart): Promise<number> {
    return transact(this.#control, async (trx) => {
      await lock(trx, { tenantId })
      // Read here, because another process, which shares no lock of a placement, may just have placed a hold.
      const held = await this.#readHolds(trx, tenantId)
      const removed = await removeAnomaliesIn(trx, tenantId, signals, range, held)
      return removed + (await redactAnomaliesIn(trx, tenantId, signals, range, held))
    })
  }

  async count(tenantId: string, { range, signals }: ErasedPart, held: readonly HeldPart[]): Promise<number> {
    const { inRange, learntFrom } = await countAnomaliesIn(this.#control, tenantId, signals, range, held)
    return inRange + learntFrom + (await countVersionsIn(this.#control, tenantId, signals, range, held))
  }

  keepers(tenantId: string, { range, signals }: ErasedPart, holds: readonly ActiveHold[]) {
    return keepersIn(this.#control, tenantId, signals, range, holds)
  }
}
