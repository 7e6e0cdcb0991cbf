// The kinds of metrics: the table of each, the order in which they are preferred where a name has several,
// and the aggregations of each. Five kinds are OpenTelemetry's and have a table each; a classic histogram of
// Prometheus is a family of counters. Nothing here reads.

import type { Aggregation } from '../../contract/telemetry/queries.ts'
import type { TableName } from '../telemetry/schema/tables.ts'
import type { PackedGroup } from './series-statement.ts'

export type MetricKind =
  | 'gauge'
  | 'sum'
  | 'histogram'
  | 'exponential_histogram'
  | 'summary'
  | 'classic_histogram'

/**
 * Properties of a metric that one of its points shows. Any point is used: if senders disagree about a name,
 * no choice is right.
 */
export interface MetricFacts {
  readonly kind: MetricKind
  readonly unit: string
  /**
   * 1 where the value only grows, or where each point has only the increase: then a rate is more useful than
   * a level.
   */
  readonly flows: number
  /** With members: the member of the point. */
  readonly grp: PackedGroup['grp']
}

/** How a metric is read, and its unit. */
export interface MetricChoice {
  readonly kind: MetricKind
  readonly aggregation: Aggregation
  /** UCUM; a rate adds `/s`. */
  readonly unit: string
}

export const tableOf: Record<MetricKind, TableName> = {
  gauge: 'otel_metrics_gauge',
  sum: 'otel_metrics_sum',
  histogram: 'otel_metrics_histogram',
  exponential_histogram: 'otel_metrics_exponential_histogram',
  summary: 'otel_metrics_summary',
  classic_histogram: 'otel_metrics_sum',
}

/** The kinds that have a table of their own. */
export const metricKinds = ['gauge', 'sum', 'histogram', 'exponential_histogram', 'summary'] as const

const growing = ['sum', 'histogram', 'exponential_histogram', 'summary', 'gauge'] as const
const distributed = ['histogram', 'exponential_histogram', 'summary', 'gauge', 'sum'] as const

const quantiles: Partial<Record<Aggregation, number>> = { p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99 }

/** Returns the quantile, from 0 to 1; undefined where the aggregation is not a quantile. */
export function quantileOf(aggregation: Aggregation): number | undefined {
  return quantiles[aggregation]
}

/**
 * The kinds in the order of preference where one name is used for several: the aggregation of the request
 * decides which one is meant. They are also tried in this order, so that the most frequent one costs least.
 */
export function kindsFor(asked: Aggregation | undefined): readonly MetricKind[] {
  if (asked === 'rate' || asked === 'increase') return growing
  return asked !== undefined && quantileOf(asked) !== undefined ? distributed : metricKinds
}

/**
 * Returns the aggregation by which a kind is read. For a sum without a requested aggregation it depends on
 * its points.
 */
export function aggregationOf(
  { kind, flows }: Pick<MetricFacts, 'kind' | 'flows'>,
  asked: Aggregation | undefined,
): Aggregation {
  if (asked !== undefined && hasAggregation(kind, asked)) return asked
  if (kind === 'sum') return flows === 1 ? 'rate' : 'avg'
  return kind === 'gauge' || kind === 'summary' ? 'avg' : 'p95'
}

/**
 * Whether a kind has that aggregation: the last value of a distribution is not one number, and the extremes
 * of a classic histogram were not sent.
 */
function hasAggregation(kind: MetricKind, aggregation: Aggregation): boolean {
  if (kind === 'classic_histogram' && (aggregation === 'min' || aggregation === 'max')) return false
  return aggregation !== 'last' || kind === 'gauge' || kind === 'sum'
}

/**
 * Whether each step is read from its own points only; otherwise it is also read from the points before and
 * after it.
 */
export function isStepwise(kind: MetricKind, aggregation: Aggregation): boolean {
  if (kind === 'gauge') return aggregation !== 'rate' && aggregation !== 'increase'
  if (kind === 'sum') return aggregation !== 'rate' && aggregation !== 'increase' && aggregation !== 'sum'
  if (aggregation === 'min' || aggregation === 'max') return true
  return kind === 'summary' && quantileOf(aggregation) !== undefined
}

/** Returns how a metric is read, from the facts that were found; null where it has no points. */
export function metricChoice(
  found: readonly MetricFacts[],
  asked: Aggregation | undefined,
): MetricChoice | null {
  const facts = kindsFor(asked).flatMap((kind) => found.filter((one) => one.kind === kind))[0]
  return facts === undefined ? null : choiceOf(facts, asked)
}

export function choiceOf(facts: Omit<MetricFacts, 'grp'>, asked: Aggregation | undefined): MetricChoice {
  const aggregation = aggregationOf(facts, asked)
  return { kind: facts.kind, aggregation, unit: unitOf(facts, aggregation) }
}

/** A count has no unit; the rate of a histogram counts observations. */
function unitOf({ kind, unit }: Pick<MetricFacts, 'kind' | 'unit'>, aggregation: Aggregation): string {
  const counts = kind !== 'gauge' && kind !== 'sum'
  if (aggregation === 'rate') return counts || unit === '' ? '1/s' : `${unit}/s`
  return aggregation === 'count' || (counts && aggregation === 'increase') ? '1' : unit
}
