// Reads the verdicts of detectors, and what they are derived from. Hundreds of a detector count, and each is
// derived from up to a hundred stretches of time, so detectors are read one by one, and other work of the
// event loop runs in between. A verdict about hidden telemetry, or on an anomaly that learnt from it, has no
// effect. What is hidden after the read is found when the run is recorded.

import type { Selectable } from 'kysely'
import { Verdict } from '../../../contract/detection/feedback.ts'
import type { Ns } from '../../../contract/values/instant.ts'
import type { AnomaliesTable, Control } from '../../control/database.ts'
import { type BoundedRange, type TimeRange, union, without } from '../../core/time-range.ts'
import { Pace } from '../../core/turns/pace.ts'
import type { TelemetryGate } from '../../telemetry/gate.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import { AnomalyFates, type AnomalySource } from './anomaly-fate.ts'
import { holesOf, type RaisingDetector, sourceColumns, sourceOf } from './anomaly-rows.ts'
import type { GivenVerdict } from './feedback.ts'
import { ofDetector, ofDetectors } from './id-list.ts'

/** Only the newest verdicts of a detector count. */
const verdictsMax = 500

const verdictColumns = [
  ...sourceColumns,
  ...(['group_key', 'value', 'expected', 'score', 'edge_factor', 'verdict', 'verdict_at_ms'] as const),
] as const

type VerdictRow = Pick<Selectable<AnomaliesTable>, (typeof verdictColumns)[number]>

/** The verdicts on a detector's anomalies of its metric. */
interface DetectorVerdicts {
  /** Oldest verdict first. */
  readonly verdicts: readonly GivenVerdict[]
  /** Whether a part of what they are derived from was hidden after they were read. */
  readonly isOutdated: () => boolean
}

const noVerdicts: DetectorVerdicts = { verdicts: [], isOutdated: () => false }

/** Yields the verdicts of each of these detectors of one organisation, in order; at most `idsMax`. */
export async function* verdictsOf(
  control: Control,
  gate: TelemetryGate,
  detectors: readonly RaisingDetector[],
): AsyncGenerator<DetectorVerdicts> {
  const [first] = detectors
  if (first === undefined) return
  const ids = detectors.map(({ id }) => id)
  // Most have none, and one statement for all of those is enough.
  const rows = await control
    .selectFrom('anomalies')
    .select('detector_id')
    .distinct()
    .where(ofDetectors(control, first.tenantId, ids))
    .where('verdict', 'is not', null)
    .execute()
  const judged = new Set(rows.map(({ detector_id }) => detector_id))
  const pace = new Pace()
  for (const detector of detectors) {
    if (!judged.has(detector.id)) yield noVerdicts
    else {
      if (pace.isOver()) await pace.turn()
      yield await readVerdicts(control, gate, detector, pace)
    }
  }
}

async function readVerdicts(
  control: Control,
  gate: TelemetryGate,
  { definition, id, tenantId }: RaisingDetector,
  pace: Pace,
): Promise<DetectorVerdicts> {
  const hidings = gate.hidings(tenantId)
  const fates = gate.hidden(tenantId).map((part) => new AnomalyFates({ ...part, held: [] }))
  const rows = await control
    .selectFrom('anomalies')
    .select(verdictColumns)
    .where(ofDetector(control, tenantId, id))
    .where('verdict', 'is not', null)
    .where('metric_key', '=', definition.metric_key)
    .orderBy('verdict_at_ms', 'desc')
    .orderBy('id', 'desc')
    .limit(verdictsMax)
    .execute()
  const verdicts: GivenVerdict[] = []
  const shared = new SharedReads()
  const basis = new Map<Signal, Set<TimeRange>>()
  for (const row of rows.reverse()) {
    if (pace.isOver()) await pace.turn()
    const source = sourceOf(row)
    if (fates.some((hiding) => hiding.of(source) !== 'kept')) continue
    const read = shared.of(row, source)
    for (const signal of source.signals) {
      const known = basis.get(signal) ?? new Set()
      basis.set(signal, known)
      for (const range of [...read, ownTimeOf(source)]) known.add(range)
    }
    verdicts.push(givenVerdict(row, source, read))
  }
  const derivedFrom = [...basis].map(([signal, ranges]) => ({ signal, ranges: union([...ranges]) }))
  // Telemetry may also have been erased completely by now. Without a hiding nothing was erased.
  const isOutdated = () =>
    gate.hidings(tenantId) !== hidings &&
    derivedFrom.some(({ ranges, signal }) =>
      ranges.some((range) => gate.unknownTime(tenantId, signal, range).length > 0),
    )
  return { verdicts, isOutdated }
}

/** What anomalies with the same holes have read in common. */
interface CommonRead {
  readonly before: readonly TimeRange[]
  /** End of the last hole. */
  readonly holesEndNs: Ns
}

/**
 * What the anomalies of a detector have read. They have read around the same holes, so most of their ranges
 * are the same. These are parsed once and are the same objects: memory and later work are for the different
 * ones only.
 */
class SharedReads {
  readonly #byText = new Map<string, CommonRead | null>()
  readonly #byStart = new Map<Ns | null, TimeRange>()

  /** Returns what `read` of the source has. */
  of({ read_from_ns, unread_ns }: VerdictRow, source: AnomalySource): readonly TimeRange[] {
    if (read_from_ns === null || unread_ns === null) return source.read
    const text = `${read_from_ns} ${unread_ns}`
    let common = this.#byText.get(text)
    if (common === undefined) {
      common = this.#commonOf(BigInt(read_from_ns), holesOf(unread_ns))
      this.#byText.set(text, common)
    }
    if (common === null || common.holesEndNs >= source.seenUntilNs) return source.read
    return [...common.before, this.#same({ startNs: common.holesEndNs, endNs: source.seenUntilNs })]
  }

  /** Null where the last hole does not end in what was read. */
  #commonOf(startNs: Ns, holes: readonly BoundedRange[]): CommonRead | null {
    let holesEndNs = startNs
    for (const { endNs } of holes) if (endNs > holesEndNs) holesEndNs = endNs
    if (holesEndNs === startNs) return null
    const before = without({ startNs, endNs: holesEndNs }, holes)
    return { before: before.map((range) => this.#same(range)), holesEndNs }
  }

  #same(range: TimeRange): TimeRange {
    const known = this.#byStart.get(range.startNs)
    if (known?.endNs === range.endNs) return known
    this.#byStart.set(range.startNs, range)
    return range
  }
}

function ownTimeOf({ seenUntilNs, startedNs }: AnomalySource): BoundedRange {
  return { startNs: startedNs, endNs: seenUntilNs }
}

function givenVerdict(
  row: VerdictRow,
  { startedNs }: AnomalySource,
  read: readonly TimeRange[],
): GivenVerdict {
  return {
    groupKey: row.group_key,
    startedNs,
    verdict: Verdict.parse(row.verdict),
    givenAtMs: row.verdict_at_ms ?? 0,
    value: row.value,
    expected: row.expected,
    score: row.score,
    edgeFactor: row.edge_factor ?? 1,
    read: read.filter(isBounded),
  }
}

function isBounded(range: TimeRange): range is BoundedRange {
  return range.startNs !== null && range.endNs !== null
}
