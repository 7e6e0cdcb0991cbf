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
import type { Clue } from './clues.ts'
import type { Surroundings } from './grouping.ts'
import { cluesOf, graphOf } from './trace-clues.ts'
import { type EvidenceWindow, readTraceEvidence } from './trace-evidence.ts'

export interface KnownSurroundings extends Surroundings {
  /** What spans point to; null where there are none, or where they could not be read in time. */
  readonly clues: readonly Clue[] | null
}

export const nothingKnown: KnownSurroundings = { graph: new CallGraph([]), deploys: [], clues: null }

/** Spans that are late by more than this are rare. */
const latenessNs = 10n * nsPerMinute
/** A deploy may cause a failure this much later. */
const deployBeforeNs = 120n * nsPerMinute
const limits: StatementLimits = { maxSeconds: 2, maxMemoryBytes: 512 * 1024 * 1024 }

/** One takes up to some 60 kB. */
const keptOfOne = 30
const organisationsMax = 20

interface Kept {
  /** That of the gate when it was read. */
  readonly visibility: number
  readonly found: KnownSurroundings
}

export class SurroundingsReader {
  readonly #gate: TelemetryGate
  readonly #kept = new Map<string, Map<string, Kept>>()

  constructor(gate: TelemetryGate) {
    this.#gate = gate
    gate.onHide((tenantId) => this.#kept.delete(tenantId))
  }

  async read(reader: TenantReader, window: EvidenceWindow, nowNs: Ns): Promise<KnownSurroundings> {
    const { tenantId } = reader.place
    const key = [window.before.startNs, window.during.startNs, window.during.endNs].join()
    const visibility = this.#gate.visibility(tenantId)
    const kept = this.#kept.get(tenantId)?.get(key)
    if (kept !== undefined && kept.visibility === visibility) return kept.found
    const evidence = await readTraceEvidence(reader, window)
    const found = {
      graph: evidence === null ? nothingKnown.graph : graphOf(evidence),
      clues: evidence === null ? null : cluesOf(evidence),
      deploys: await deploysAround(reader, window),
    }
    if (window.during.endNs + latenessNs < nowNs) this.#keep(tenantId, key, { visibility, found })
    return found
  }

  #keep(tenantId: string, key: string, kept: Kept): void {
    if (this.#gate.visibility(tenantId) !== kept.visibility) return
    const own = this.#kept.get(tenantId) ?? new Map<string, Kept>()
    dropFirst(own, keptOfOne)
    if (!this.#kept.has(tenantId)) dropFirst(this.#kept, organisationsMax)
    this.#kept.set(tenantId, own)
    own.set(key, kept)
  }
}

/** Makes room for one more. */
function dropFirst(kept: Map<string, unknown>, max: number): void {
  const [first] = kept.keys()
  if (kept.size >= max && first !== undefined) kept.delete(first)
}

async function deploysAround(reader: TenantReader, window: EvidenceWindow): Promise<readonly KnownDeploy[]> {
  const { endNs } = window.during
  const startNs = window.before.endNs > deployBeforeNs ? window.before.endNs - deployBeforeNs : 0n
  try {
    return (await readDeploys(reader, { windows: [{ startNs, endNs }] }, limits)).deploys
  } catch (error) {
    if (isTooExpensive(error)) return []
    throw error
  }
}
