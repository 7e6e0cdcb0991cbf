// Reads a metric of which only the name is known. Its kind follows from the table of its points: the likely
// kinds are tried by statements that return the complete result, so that finding the kind costs only the
// tables before it, and nothing from the second read on. Where they have no points, one statement asks for
// the others: a detector that learns reads many weeks without any, and each statement waits for its turn.
// Flows of small windows are computed from their points, large ones by the engine; the result is the same.

import type { Aggregation } from '../../contract/telemetry/queries.ts'
import { AppError } from '../core/app-error.ts'
import { isBecauseOfOthers, isTooExpensive, type StatementLimits } from '../telemetry/engine.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { isBucketName, isOfParts, type PartRow, settleRows } from './classic-histogram.ts'
import { kindMemoryOf } from './kind-memory.ts'
import {
  aggregationOf,
  choiceOf,
  isStepwise,
  kindsFor,
  type MetricChoice,
  type MetricFacts,
  type MetricKind,
  quantileOf,
} from './metric-kind.ts'
import { pointsMax, readMetricPoints } from './metric-points.ts'
import { metricStatement } from './metric-series.ts'
import { countStatement, factsStatement, familyStatement } from './point-conditions.ts'
import { groupsOfPoints } from './point-series.ts'
import { groupsOf, type PackedGroup, type SeriesFrame, type SeriesRow } from './series-statement.ts'

interface MetricReading extends MetricChoice {
  readonly rows: readonly PackedGroup[]
}

interface Question {
  readonly reader: TenantReader
  readonly frame: SeriesFrame
  readonly metric: string
  readonly asked: Aggregation | undefined
  readonly limits: StatementLimits | undefined
}

/**
 * Two days. For a longer range points are counted first, which takes as long as the statement of a window.
 * For a shorter one they are fetched at once, which is wasted where there are too many.
 */
const shortNs = 172_800_000_000_000n

/** Returns null where the metric has no points. The frame has no members. */
export async function readMetric(question: Question): Promise<MetricReading | null> {
  const { metric, asked, reader } = question
  const kinds = kindMemoryOf(reader.gate)
  const { tenantId } = reader.place
  const order = orderOf(metric, asked)
  const name = JSON.stringify([metric, order[0]])
  const remembered = kinds.recall(tenantId, name)
  if (remembered !== undefined) {
    const reading = await readAs(question, remembered)
    if (reading !== null) return reading
  }
  const asOf = reader.gate.hidings(tenantId)
  const others = order.filter((kind) => kind !== remembered)
  const likely = remembered === undefined ? others.splice(0, likelyKinds) : []
  const reading =
    (await readFirst(question, likely)) ?? (await readFirst(question, await kindsAmong(question, others)))
  // If something was hidden meanwhile, the points that were found may be hidden.
  const isVisible = reader.gate.hidings(tenantId) === asOf
  if (reading !== null && isVisible) kinds.remember(tenantId, name, reading.kind)
  return reading
}

/** So many kinds are tried before it is asked which of the others have points: most metrics are of these. */
const likelyKinds = 2

/** Reads the metric as the first of these kinds that has points. */
async function readFirst(question: Question, kinds: readonly MetricKind[]): Promise<MetricReading | null> {
  for (const kind of kinds) {
    const reading = await readAs(question, kind)
    if (reading !== null) return reading
  }
  return null
}

/** Returns those of the kinds that may have points, in the same order. */
async function kindsAmong(
  { frame, limits, metric, reader }: Question,
  kinds: readonly MetricKind[],
): Promise<readonly MetricKind[]> {
  // A classic histogram has buckets, however it is read.
  const found = await reader.rows<MetricFacts>(
    (from) => factsStatement(from, frame, metric, kinds, 'p50'),
    limits,
  )
  return kinds.filter((kind) => found.some((facts) => facts.kind === kind))
}

/**
 * A family of counters is read by its name only where nothing else has that name; quantiles of its buckets
 * are always those of the family.
 */
function orderOf(metric: string, asked: Aggregation | undefined): readonly MetricKind[] {
  const kinds = kindsFor(asked)
  const isFirst = isBucketName(metric) && asked !== undefined && quantileOf(asked) !== undefined
  return isFirst ? ['classic_histogram', ...kinds] : [...kinds, 'classic_histogram']
}

/** Reads the metric as one of that kind; null where the kind has no points of the name. */
async function readAs(question: Question, kind: MetricKind): Promise<MetricReading | null> {
  const aggregation = aggregationOf({ kind, flows: 1 }, question.asked)
  if (kind === 'classic_histogram' && quantileOf(aggregation) === undefined && !(await isFamily(question)))
    return null
  if (isStepwise(kind, aggregation)) return readSteps(question, kind, aggregation)
  const { startNs, endNs } = question.frame
  return endNs - startNs <= shortNs ? readSmall(question, kind, aggregation) : readLong(question, kind)
}

/** Counters may be named `_count` or `_sum` without being part of a histogram; only buckets prove it. */
async function isFamily({ frame, limits, metric, reader }: Question): Promise<boolean> {
  const found = await reader.rows((from) => familyStatement(from, frame, metric), limits)
  return found.length > 0
}

async function readSteps(
  question: Question,
  kind: MetricKind,
  aggregation: Aggregation,
): Promise<MetricReading | null> {
  const rows = await readRows(question, kind, aggregation)
  const [first] = rows
  if (first?.steps[0] === undefined) return null
  return { ...choiceOf({ kind, unit: first.unit ?? '', flows: 0 }, aggregation), rows }
}

async function readSmall(
  question: Question,
  kind: MetricKind,
  aggregation: Aggregation,
): Promise<MetricReading | null> {
  const { asked, frame, limits, metric, reader } = question
  const read = await readMetricPoints(reader, frame, { metric, kind, aggregation }, limits)
  if (read === null) return readByEngine(question, kind, aggregation)
  const { series, ...facts } = read
  if (series?.length === 0) return null
  const choice = choiceOf({ kind, unit: facts.unit, flows: facts.flows ? 1 : 0 }, asked)
  const computed = series === null ? null : groupsOfPoints(frame, series, choice)
  return { ...choice, rows: computed ?? (await readRows(question, kind, choice.aggregation)) }
}

async function readLong(question: Question, kind: MetricKind): Promise<MetricReading | null> {
  const { asked, frame, limits, metric, reader } = question
  const aggregation = aggregationOf({ kind, flows: 1 }, asked)
  const [counted] = await reader.rows<{ n: number }>(
    (from) => countStatement(from, frame, { metric, kind, aggregation }),
    limits,
  )
  const count = counted?.n ?? 0
  if (count === 0) return null
  if (count <= pointsMax[kind]) return readSmall(question, kind, aggregation)
  return readByEngine(question, kind, aggregation)
}

/** Reads points that are too many or too large to be computed here. */
async function readByEngine(
  question: Question,
  kind: MetricKind,
  aggregation: Aggregation,
): Promise<MetricReading | null> {
  const { asked, frame, limits, metric, reader } = question
  const [facts] = await reader.rows<MetricFacts>(
    (from) => factsStatement(from, frame, metric, [kind], aggregation),
    limits,
  )
  if (facts === undefined) return null
  const choice = choiceOf(facts, asked)
  return { ...choice, rows: await readRows(question, kind, choice.aggregation) }
}

const tooManyEdges =
  'The histograms are too many to add up, or have too many different buckets; shorten the range, name a service or an attribute, or send them with the same bounds.'

async function readRows(
  { frame, limits, metric, reader }: Question,
  kind: MetricKind,
  aggregation: Aggregation,
): Promise<PackedGroup[]> {
  const statement = { metric, kind, aggregation }
  if (kind === 'classic_histogram' && isOfParts(aggregation)) {
    const parts = await reader.rows<PartRow>((from) => metricStatement(from, frame, statement), limits)
    return settleRows(frame, parts, aggregation)
  }
  const rows = await reader
    .rows<SeriesRow>((from) => metricStatement(from, frame, statement), limits)
    .catch((cause: unknown) => {
      const isOwn = isTooExpensive(cause) && !isBecauseOfOthers(cause)
      if (!isOwn || !hasEdges(kind) || quantileOf(aggregation) === undefined) throw cause
      throw new AppError('query_too_expensive', { sentence: tooManyEdges, cause })
    })
  return groupsOf(frame, rows, false)
}

/** Whether quantiles are computed from buckets of any bounds. */
function hasEdges(kind: MetricKind): boolean {
  return kind === 'histogram' || kind === 'exponential_histogram'
}
