// The surroundings of incidents: the evidence of spans, and deploys. Reading them takes longer than
// everything else of an incident, so the surroundings of a time that is over are kept in memory for the next
// reader. Nothing that is hidden is kept: when something of an organisation is hidden, all of its entries are
// dropped. What was read while something was hidden is used only as long as that is hidden.

import { type Ns, nsPerMinute } from '../../../contract/values/instant.ts'
import type { KnownDeploy } from '../../deploys/deploys.ts'
import { readDeploys } from '../../deploys/read-deploys.ts'
import { isTooExpensive, type StatementLimits } from '../../telemetry/engine.ts'
import type { TelemetryGate } from '../../telemetry/gate.ts'
import type { TenantReader } from '../../telemetry/tenant-reader.ts'
import { CallGraph } from './call-graph.ts'
import { KeptSurroundings, type KnownSurroundings } from './kept-surroundings.ts'
import { nearestDeploys } from './nearest-deploys.ts'
import { cluesOf, graphOf } from './trace-clues.ts'
import { type EvidenceWindow, readTraceEvidence } from './trace-evidence.ts'

export const nothingKnown: KnownSurroundings = { graph: new CallGraph([]), deploys: [], clues: null }

/** Spans that are late by more than this are rare. */
const latenessNs = 10n * nsPerMinute
/** A deploy may cause a failure this much later. */
const deployBeforeNs = 120n * nsPerMinute
const limits: StatementLimits = { maxSeconds: 2, maxMemoryBytes: 512 * 1024 * 1024 }

export class SurroundingsReader {
  readonly #gate: TelemetryGate
  readonly #kept = new KeptSurroundings()

  constructor(gate: TelemetryGate) {
    this.#gate = gate
    gate.onHide((tenantId) => this.#kept.forget(tenantId))
  }

  async read(reader: TenantReader, window: EvidenceWindow, nowNs: Ns): Promise<KnownSurroundings> {
    const { tenantId } = reader.place
    const key = [window.before.startNs, window.during.startNs, window.during.endNs].join()
    const visibility = this.#gate.visibility(tenantId)
    const kept = this.#kept.find(tenantId, key, visibility)
    if (kept !== undefined) return kept
    const evidence = await readTraceEvidence(reader, window)
    const found = {
      graph: evidence === null ? nothingKnown.graph : graphOf(evidence),
      clues: evidence === null ? null : cluesOf(evidence),
      deploys: await deploysAround(reader, window),
    }
    const isOver = window.during.endNs + latenessNs < nowNs
    if (isOver && this.#gate.visibility(tenantId) === visibility)
      this.#kept.keep(tenantId, key, { visibility, found })
    return found
  }
}

async function deploysAround(reader: TenantReader, window: EvidenceWindow): Promise<readonly KnownDeploy[]> {
  const { endNs } = window.during
  const startNs = window.before.endNs > deployBeforeNs ? window.before.endNs - deployBeforeNs : 0n
  try {
    const { deploys } = await readDeploys(reader, { windows: [{ startNs, endNs }] }, limits)
    return nearestDeploys(deploys, window.before.endNs)
  } catch (error) {
    if (isTooExpensive(error)) return []
    throw error
  }
}
