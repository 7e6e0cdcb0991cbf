// A series set in the format of the wire: a point for each step, null where there is no data, and marked
// where the time was erased. Its size is limited, so that one request does not cost others too much: a longer
// series has fewer groups.

import type { z } from 'zod'
import type { SeriesAnswer, SeriesQuery } from '../../contract/telemetry/queries.ts'
import { formatInstant, nsPerSecond } from '../../contract/values/instant.ts'
import { AppError, InvalidInput, problem } from '../core/app-error.ts'
import { fitting } from '../core/input/cursor.ts'
import { eventSeriesOf } from '../series/event-series.ts'
import {
  countedOf,
  countSteps,
  maxSteps,
  readSeries,
  type SeriesGroup,
  type SeriesSet,
} from '../series/series.ts'
import { type GroupBy, labelsOf } from '../series/series-statement.ts'
import { isTooExpensive, type StatementLimits } from '../telemetry/engine.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { ifAffordable, interactiveLimits, smallBlockRows } from './search.ts'
import { warningsOf } from './series-warnings.ts'
import { type TimeWindow, timeWindow } from './time-window.ts'

/** At most the 50 busiest groups, and as many points in all as fit into about three megabytes of JSON. */
const maxGroups = 50
const maxPoints = 50_000

/** JSON of the names of groups, bytes: the rest of a page. A value may be as long as any attribute. */
const maxNames = 1 << 20

type Answer = z.infer<typeof SeriesAnswer>
type Query = z.output<typeof SeriesQuery>

/**
 * Throws InvalidInput for an empty range, too many steps, or an aggregation that this metric doesn't have.
 */
export async function answerSeries(
  reader: TenantReader,
  query: Query,
  nowNs: bigint,
  limits?: StatementLimits,
): Promise<Answer> {
  if (query.across !== undefined && query.aggregation !== 'last') throw acrossAlone(query.across)
  const request = {
    metricKey: query.metric_key,
    service: query.service,
    attributes: query.attribute,
    groupBy: groupByOf(query),
    aggregation: query.aggregation,
    across: query.across,
    ...rangeOf(query, nowNs),
    isExact: true,
    stepSeconds: query.step_seconds,
    nowNs,
  }
  const steps = countSteps(request)
  if (steps > maxSteps) throw tooManySteps(request)
  const groups = Math.max(1, Math.min(maxGroups, Math.floor(maxPoints / steps)))
  const set = await readBounded(reader, { ...request, maxGroups: groups }, limits)
  if (query.aggregation !== undefined && query.aggregation !== set.aggregation) {
    throw unsuited(query.aggregation, set)
  }
  const names = {
    metric: query.metric_key,
    service: query.service,
    attribute: query.attribute,
    groupBy: request.groupBy,
  }
  const warnings = await warningsOf(reader, names, set, limits)
  return { ...answerOf(set, query, nowNs), warnings }
}

/**
 * Reads again in small blocks where long rows are among short ones. What then still costs too much are mostly
 * the groups, which the engine must count to find the busiest.
 */
async function readBounded(
  reader: TenantReader,
  request: Parameters<typeof readSeries>[1],
  limits: StatementLimits | undefined,
): Promise<SeriesSet> {
  const set = await ifAffordable(readSeries(reader, request, limits))
  if (set !== null) return set
  try {
    const { maxMemoryBytes, maxSeconds } = limits ?? interactiveLimits
    return await readSeries(reader, request, { maxMemoryBytes, maxSeconds, maxBlockRows: smallBlockRows })
  } catch (cause) {
    if (!isTooExpensive(cause) || request.groupBy === undefined) throw cause
    throw new AppError('query_too_expensive', { sentence: tooManyGroups, cause })
  }
}

const tooManyGroups =
  'The series has more groups than can be counted at once; leave a key of group_by out, name a service or an attribute, or shorten the range.'

/**
 * Returns exactly the requested range. Without a requested start, the hour before the end begins with a whole
 * step.
 */
function rangeOf(query: Query, nowNs: bigint): TimeWindow {
  const { startNs, endNs } = timeWindow(query, nowNs)
  if (query.range_start !== undefined) return { startNs, endNs }
  const step = BigInt(query.step_seconds) * nsPerSecond
  return { startNs: (startNs / step) * step, endNs }
}

function answerOf(set: SeriesSet, query: Query, nowNs: bigint): Omit<Answer, 'warnings'> {
  const step = BigInt(set.stepSeconds) * nsPerSecond
  const frame = { ...set, endNs: set.startNs + BigInt(set.steps) * step }
  const axis = Array.from({ length: set.steps }, (_, i) => {
    const { startNs, endNs } = countedOf(frame, i)
    const seconds = endNs - startNs === step ? {} : { seconds: Number(endNs - startNs) / 1e9 }
    // Future time has no counts yet, which differs from zero.
    return { isPast: startNs <= nowNs, place: { time: formatInstant(startNs), ...seconds } }
  })
  const [start, end] = [formatInstant(set.counted.startNs), formatInstant(set.counted.endNs)]
  const named = set.groups.map((group) => ({ group, names: namesOf(group, groupByOf(query)) }))
  const shown = fitting(
    named.map(({ names }) => names),
    maxNames,
  )
  return {
    metric_key: set.metricKey,
    unit: set.unit,
    aggregation: set.aggregation,
    across: acrossOf(set, query),
    step_seconds: set.stepSeconds,
    range_start: start,
    range_end: end,
    series: named
      .slice(0, shown)
      .map(({ group, names }) => ({ ...names, points: pointsOf(group, set, axis) })),
    truncated: set.truncatedGroups > 0 || shown < named.length,
    metric: set.metricKey,
    start,
    end,
  }
}

/** By the rules of `metric-series.ts`. */
function acrossOf({ aggregation, metricKey }: SeriesSet, query: Query): Answer['across'] {
  if (eventSeriesOf(metricKey) !== undefined) return 'pooled'
  if (aggregation === 'last') return query.across ?? 'avg'
  return aggregation === 'rate' || aggregation === 'increase' || aggregation === 'sum' ? 'sum' : 'pooled'
}

/** A single key is read as a plain text, which costs less than a list of one. */
function groupByOf({ group_by: keys }: Query): GroupBy | undefined {
  return keys?.length === 1 ? keys[0] : keys
}

function namesOf({ group }: SeriesGroup, groupBy: GroupBy | undefined) {
  const labels = labelsOf(groupBy, group)
  return {
    group: groupBy === undefined ? null : labels.map(([, value]) => value).join(', '),
    labels: Object.fromEntries(labels),
  }
}

interface Step {
  readonly isPast: boolean
  readonly place: { readonly time: string; readonly seconds?: number }
}

function pointsOf(group: SeriesGroup, set: SeriesSet, axis: readonly Step[]) {
  return axis.map(({ isPast, place }, i) => {
    const value = isPast ? (group.values[i] ?? Number.NaN) : Number.NaN
    const point = { ...place, value: Number.isFinite(value) ? value : null }
    return set.unknown[i] === 1 ? { ...point, erased: true } : point
  })
}

function acrossAlone(across: string): InvalidInput {
  return new InvalidInput([
    problem(
      ['query', 'across'],
      'value_error',
      'Only aggregation=last takes a value of each series first; leave across out, or ask for last',
      across,
    ),
  ])
}

function tooManySteps(request: { startNs: bigint; endNs: bigint; stepSeconds: number }): InvalidInput {
  const seconds = Number((request.endNs - request.startNs) / nsPerSecond)
  // One step fewer than the limit, because aligning the range may add one.
  const least = Math.ceil(seconds / (maxSteps - 1))
  return new InvalidInput([
    problem(
      ['query', 'step_seconds'],
      'greater_than_equal',
      `This range would take more than ${maxSteps} steps; use a step of ${least} seconds or more, or a shorter range`,
      String(request.stepSeconds),
      { ge: least },
    ),
  ])
}

function unsuited(asked: string, set: SeriesSet): InvalidInput {
  return new InvalidInput([
    problem(
      ['query', 'aggregation'],
      'value_error',
      `${set.metricKey} can't be read as ${asked}; leave it out for ${set.aggregation}`,
      asked,
      { default: set.aggregation },
    ),
  ])
}
