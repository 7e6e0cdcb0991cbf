// Statements for series of OpenTelemetry metrics. The table of a name decides what its points mean
// (OpenTelemetry, metrics data model). Levels (gauge, non-monotonic sum) are read as they are stored. Flows
// (counters, and the counts and sums of histograms) are read as the increase between two points of one
// underlying series. Distributions are read as the increase of their buckets. An underlying series is one
// service, resource, scope and attribute set, and the start from which cumulative points count: a new start
// begins a new life. Points that have NO_RECORDED_VALUE are skipped.
//
// A cumulative point has the increase since the point before it, which is distributed evenly over the time
// between the two. So a rate has no sawtooth where the export interval and the step differ, and no spike
// where points were late. A reset shows as a smaller value or as another start. docs/decisions/0025 defines
// rates.

import type { Aggregation } from '../../contract/telemetry/queries.ts'
import { raw, type Sql, sql, uint } from '../telemetry/sql.ts'
import type { From, TableSelect } from '../telemetry/tenant-reader.ts'
import { anyBound, isOfParts, openBound } from './classic-histogram.ts'
import { type MetricKind, quantileOf, tableOf } from './metric-kind.ts'
import { partOf } from './metric-points.ts'
import { around, type MetricRequest, pointConditions, reachNs } from './point-conditions.ts'
import {
  countedNs,
  countedRange,
  groupingOf,
  groupOf,
  int64,
  lateAfter,
  lengthNs,
  packed,
  passedNs,
  relativeTime,
  type SeriesFrame,
  stepNs,
  unknownStart,
} from './series-statement.ts'

/**
 * Returns one statement for a metric of a known kind. Where each step is read from its own points only and
 * there are no members, it also returns the unit, so that it can be tried before the kind is known.
 */
export function metricStatement(from: From, frame: SeriesFrame, request: MetricRequest): Sql {
  const { kind, aggregation } = request
  const readIn = (range: Pick<SeriesFrame, 'startNs' | 'endNs'>) => (select: Select) =>
    from.select(tableOf[kind], {
      ...select,
      conditions: pointConditions(frame, request, range),
      isOrdered: true,
    })
  const source: Points = { within: readIn(countedRange(frame)), around: readIn(around(frame)) }
  if (kind === 'gauge' || kind === 'sum') {
    if (aggregation === 'rate' || aggregation === 'increase' || (aggregation === 'sum' && kind === 'sum')) {
      return flow(frame, source, aggregation, kind === 'sum' ? counter : level)
    }
    return levels(frame, source, aggregation)
  }
  if (kind === 'classic_histogram') {
    return isOfParts(aggregation) ? family(frame, source, request) : flow(frame, source, aggregation, counter)
  }
  if (aggregation === 'rate' || aggregation === 'increase' || aggregation === 'count')
    return flow(frame, source, aggregation, observations(kind))
  if (aggregation === 'sum') return flow(frame, source, aggregation, observedSum(kind))
  if (aggregation === 'min' || aggregation === 'max') return extremes(frame, source, kind, aggregation)
  const quantile = quantileOf(aggregation)
  if (quantile === undefined) return mean(frame, source, kind)
  return kind === 'summary'
    ? summaryQuantile(frame, source, quantile)
    : distribution(frame, source, kind, quantile)
}

/** Recorded points of one metric: those of the steps only, or from a little before to a little after. */
interface Points {
  readonly within: (select: Select) => Sql
  readonly around: (select: Select) => Sql
}

type Select = Pick<TableSelect, 'columns' | 'groupBy' | 'window'>

const noZeros = raw('0')

/**
 * Readings as they are stored. `sum` and `last` first compute one value for each underlying series, because
 * the number of its reports has no meaning.
 */
function levels(frame: SeriesFrame, source: Points, aggregation: Aggregation): Sql {
  if (aggregation === 'sum' || aggregation === 'last') {
    const own = aggregation === 'sum' ? 'avg(Value)' : 'argMax(Value, (TimeUnix, Value))'
    const across = aggregation === 'sum' ? 'sum(own)' : `${frame.across ?? 'avg'}(own)`
    const { columns, key } = groupingOf(frame, 'AttributesPairs', 'TimeUnix')
    const unit = unitOf(frame)
    const settled = source.within({
      columns: sql`${columns}, ${raw(own)} AS own, count() AS n${raw(unit.ofPoints)}`,
      groupBy: sql`${key}, SeriesId`,
    })
    return packed(
      frame,
      sql`SELECT ${key}, ${raw(across)} AS reading, sum(n) AS amount${raw(unit.ofRows)} FROM (${settled}) GROUP BY ${key}`,
      noZeros,
      raw(unit.ofRows),
    )
  }
  const quantile = quantileOf(aggregation)
  const reading =
    quantile !== undefined
      ? `quantileExactInclusive(${quantile})(Value)`
      : aggregation === 'count'
        ? 'toFloat64(count())'
        : `${aggregation}(Value)`
  return perStep(frame, source, reading)
}

/** The unit, of points and of rows that have it; for members it is known before. */
function unitOf({ members }: SeriesFrame): { readonly ofPoints: string; readonly ofRows: string } {
  if (members !== undefined) return { ofPoints: '', ofRows: '' }
  return { ofPoints: ', toString(any(MetricUnit)) AS unit', ofRows: ', any(unit) AS unit' }
}

/** A flow as expressions over the point: its value, whether it is a delta, and whether it only grows. */
interface Grower {
  readonly value: string
  readonly isDelta: string
  readonly onlyGrows: string
  /** False where the value was not zero at its start time, so that a first point has no increase. */
  readonly fromZero: boolean
}

/** A relative start time before any point. */
const longAgo = 'toInt64(-9000000000000000000)'

const level: Grower = { value: 'Value', isDelta: '0', onlyGrows: '0', fromZero: false }
const counter: Grower = {
  value: 'Value',
  isDelta: 'AggregationTemporality = 1',
  onlyGrows: 'IsMonotonic',
  fromZero: true,
}

/** A summary is cumulative by definition and has no column for it. */
const deltaOf = (kind: MetricKind): string => (kind === 'summary' ? '0' : 'AggregationTemporality = 1')
const observations = (kind: MetricKind): Grower => ({
  value: 'toFloat64(Count)',
  isDelta: deltaOf(kind),
  onlyGrows: '1',
  fromZero: true,
})
const observedSum = (kind: MetricKind): Grower => ({
  value: 'Sum',
  isDelta: deltaOf(kind),
  onlyGrows: '1',
  fromZero: true,
})

/**
 * The increase in each step, or for each second of it. A delta point counts in the step of its own time, and
 * steps without one are zero. A cumulative point is distributed over the time since the point before it, and
 * steps that are not between two points have no data. The first point of a series counts only where its start
 * time is inside the range.
 */
function flow(frame: SeriesFrame, source: Points, aggregation: Aggregation, grower: Grower): Sql {
  const step = raw(stepNs(frame).toString())
  const [passed, counted] = [passedNs(frame), countedNs(frame)]
  const isWhole = counted.from === 0n && counted.to === lengthNs(frame) && passed === counted.to
  const end = sql`if(is_delta, ${int64(counted.to)}, ${int64(passed)})`
  const ofStep = sql`least((toInt64(step) + 1) * ${step}, ${end}) - greatest(toInt64(step) * ${step}, ${int64(counted.from)})`
  // A delta may cover a longer time than the remaining part of a cut step; it is not a spike there.
  const over = isWhole
    ? raw(frame.stepSeconds.toFixed(1))
    : sql`if(is_delta, least(${int64(stepNs(frame))}, greatest(${ofStep}, span)), ${ofStep}) / 1e9`
  const reading = aggregation === 'rate' ? sql`sum(gained / (${over}))` : raw('sum(gained)')
  return packed(
    frame,
    sql`SELECT grp, step, ${reading} AS reading, count() AS amount, toUInt8(max(is_delta)) AS counting FROM (${gains(frame, source, grower)}) GROUP BY grp, step`,
    raw('max(counting)'),
  )
}

/** The increase of each part of a classic histogram in each step, for {@link settleRows}. */
function family(frame: SeriesFrame, source: Points, request: MetricRequest): Sql {
  const part = partOf(request)
  const isMean = request.aggregation === 'avg'
  const amount = raw(isMean ? `sumIf(gain, endsWith(part, '_count'))` : 'max(gain)')
  // Rows for which `settle` returns nothing are excluded here, so that their groups are not counted.
  const isSettled = isMean
    ? 'amount > 0'
    : `amount > 0 AND count() > 1 AND countIf(match(part, '${openBound}')) > 0`
  const isPart = raw(isMean ? '1' : `match(part, '${anyBound}')`)
  const perPart = sql`SELECT grp, part, step, sum(gained) AS gain FROM (${gains(frame, source, counter, part)}) WHERE ${isPart} GROUP BY grp, part, step`
  const perStep = sql`SELECT grp, step, groupArray(part) AS parts, groupArray(gain) AS gains, ${amount} AS amount FROM (${perPart}) GROUP BY grp, step HAVING ${raw(isSettled)}`
  if (frame.groupBy === undefined) return perStep
  return sql`SELECT grp, groupArray(step) AS steps, groupArray(parts) AS parts, groupArray(gains) AS gains, count() OVER () AS groups FROM (${perStep})
GROUP BY grp ORDER BY sum(amount) DESC, grp LIMIT ${uint(frame.maxGroups)}`
}

/**
 * Rows of (grp, is_delta, step, span, gained), with the part where parts are separate: the increase of a
 * point in a step, and the time that it covers. The first point of a series without a known start begins half
 * an interval before it, or when the series was zero, whichever is later. The last point of a series extends
 * to the end where the next one is not yet late, and for half an interval where no start is known. Nothing
 * else is extrapolated.
 */
function gains(frame: SeriesFrame, source: Points, grower: Grower, part?: Sql): Sql {
  const step = raw(stepNs(frame).toString())
  const [from, to] = [int64(countedNs(frame).from), int64(countedNs(frame).to)]
  const passed = int64(passedNs(frame))
  const ofPart = raw(part === undefined ? '' : 'part, ')
  const points = source.around({
    columns: sql`${groupOf(frame, 'AttributesPairs')} AS grp, SeriesId AS series, toBool(${raw(grower.isDelta)}) AS is_delta, ${part === undefined ? raw('') : sql`${part} AS part, `}
  ${raw(grower.value)} AS cur, ${relativeTime(frame, 'TimeUnix')} AS t, ${grower.fromZero ? relativeTime(frame, 'StartTimeUnix') : raw(longAgo)} AS s, if(is_delta, 0, s) AS life,
  row_number() OVER w AS nth, count() OVER w AS points, lagInFrame(cur) OVER w AS before, lagInFrame(t) OVER w AS before_t, toBool(${raw(grower.onlyGrows)}) AS only_grows`,
    window: raw(
      'PARTITION BY series, is_delta, life ORDER BY t ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING',
    ),
  })
  const added = sql`SELECT grp, ${ofPart}is_delta, t, if(is_delta, t, if(nth = 1, s, before_t)) AS start, t - if(is_delta, if(is_start_unknown, t, s), start) AS span,
  if(is_delta OR nth = 1 OR (only_grows AND cur < before), cur, cur - before) AS gain, s <= ${raw(unknownStart(frame).toString())} AS is_start_unknown,
  if(is_start_unknown AND nth = 2, toInt64(floor(least(span / 2, if(only_grows AND gain > 0, greatest(before, 0.) * span / gain, span / 2)))), 0) AS back,
  multiIf(nth = 1 OR nth < points OR t >= ${passed}, 0, ${passed} - t < ${raw(String(lateAfter))} * span, ${passed} - t, is_start_unknown, intDiv(span, 2), 0) AS on
FROM (${points}) WHERE if(is_delta, t >= ${from} AND t < ${to}, span > 0 AND start >= ${raw((-reachNs).toString())})`
  const inside = sql`SELECT grp, ${ofPart}is_delta, gain, span, if(is_delta, t, greatest(start - back, ${from})) AS f, if(is_delta, t, least(t + on, ${passed})) AS to
FROM (${added}) WHERE is_delta OR f < to`
  const spread = sql`SELECT grp, ${ofPart}is_delta, gain, span, f, to,
  arrayJoin(range(toUInt32(intDiv(f, ${step})), toUInt32(intDiv(to - NOT is_delta, ${step})) + 1)) AS step
FROM (${inside})`
  return sql`SELECT grp, ${ofPart}is_delta, step, span,
  if(is_delta, gain, gain * ((least(to, (toInt64(step) + 1) * ${step}) - greatest(f, toInt64(step) * ${step})) / 1e9) / (span / 1e9)) AS gained
FROM (${spread})`
}

function extremes(frame: SeriesFrame, source: Points, kind: MetricKind, side: 'min' | 'max'): Sql {
  const wanted = side === 'min' ? '0' : '1'
  const reading =
    kind === 'summary'
      ? `${side}If(${quantileValue(wanted)}, has(\`ValueAtQuantiles.Quantile\`, ${wanted}))`
      : `${side}(${side === 'min' ? 'Min' : 'Max'})`
  return perStep(frame, source, reading)
}

/**
 * Quantiles of a summary were computed at the source and can't be merged; their mean is the best available
 * value.
 */
function summaryQuantile(frame: SeriesFrame, source: Points, quantile: number): Sql {
  const wanted = String(quantile)
  return perStep(
    frame,
    source,
    `avgIf(${quantileValue(wanted)}, has(\`ValueAtQuantiles.Quantile\`, ${wanted}))`,
  )
}

const quantileValue = (wanted: string): string =>
  `\`ValueAtQuantiles.Value\`[indexOf(\`ValueAtQuantiles.Quantile\`, ${wanted})]`

function perStep(frame: SeriesFrame, source: Points, reading: string): Sql {
  const { columns, key } = groupingOf(frame, 'AttributesPairs', 'TimeUnix')
  const unit = unitOf(frame)
  const rows = source.within({
    columns: sql`${columns}, ${raw(reading)} AS reading, count() AS amount${raw(unit.ofPoints)}`,
    groupBy: key,
  })
  return packed(frame, rows, noZeros, raw(unit.ofRows))
}

/** Mean of the observations between a point and the one before it. */
function mean(frame: SeriesFrame, source: Points, kind: MetricKind): Sql {
  const added = sql`SELECT grp, step, starts_anew OR nth = 1 AS whole, total - if(whole, 0, before_total) AS gained,
  observed - if(whole, 0, before_observed) AS gained_sum
FROM (${chained(frame, source, kind, 'Sum AS observed, lagInFrame(observed) OVER w AS before_observed')}) WHERE counted`
  return packed(
    frame,
    sql`SELECT grp, step, sum(gained_sum) / sum(gained) AS reading, sum(gained) AS amount FROM (${added}) GROUP BY grp, step HAVING amount > 0`,
    noZeros,
  )
}

/**
 * Quantile of the observations in each step. Buckets are identified by their upper edge, so histograms of
 * different bounds and exponential histograms of different scales add up; subtracting the previous point is
 * adding its buckets with a negative sign. A point whose buckets the next point subtracts in the same step is
 * left out, so that the cost of a long step depends on its ends and not on its points. A quantile is
 * interpolated evenly within its bucket, as in Prometheus; in the bucket that is open above it is the lower
 * edge.
 */
function distribution(
  frame: SeriesFrame,
  source: Points,
  kind: 'histogram' | 'exponential_histogram',
  quantile: number,
): Sql {
  const { columns, edges, counts } = buckets[kind]
  const changes = sql`SELECT grp, ${raw(columns)}, next_linked AND counted AND step = next_step AS cancels,
  arrayJoin(arrayFilter(c -> c.3, [(step, toInt64(1), counted AND NOT cancels), (next_step, toInt64(-1), next_linked AND NOT cancels)])) AS change
FROM (${chained(frame, source, kind, columns)})`
  const summed = sql`SELECT grp, change.1 AS step, sumMap(${raw(edges)} AS edges, arrayMap(c -> c * change.2, ${raw(counts)}), arrayMap(e -> 1, edges)) AS buckets
FROM (${changes}) GROUP BY grp, step`
  return packed(
    frame,
    sql`SELECT grp, step, ${interpolated(quantile)} AS reading, arraySum(buckets.2) AS amount FROM (${summed}) WHERE amount > 0`,
    noZeros,
  )
}

/**
 * Points with their relation to their neighbours in the same underlying series: `starts_anew` where the point
 * counts from its own zero, `counted` where its increase belongs to the series, `next_linked` where the
 * increase of the next point is measured from this one, and the steps of both.
 */
function chained(frame: SeriesFrame, source: Points, kind: MetricKind, more: string): Sql {
  const step = raw(stepNs(frame).toString())
  const { from, to } = countedNs(frame)
  const inside = (time: string) => sql`${raw(time)} >= ${int64(from)} AND ${raw(time)} < ${int64(to)}`
  const stepAt = (time: string) => sql`toUInt32(if(${inside(time)}, intDiv(${raw(time)}, ${step}), 0))`
  const neighbours = source.around({
    columns: sql`*, ${groupOf(frame, 'AttributesPairs')} AS grp, SeriesId AS series, toBool(${raw(deltaOf(kind))}) AS is_delta,
  ${relativeTime(frame, 'TimeUnix')} AS t, ${relativeTime(frame, 'StartTimeUnix')} AS s, if(is_delta, 0, s) AS life, toInt64(Count) AS total, row_number() OVER w AS nth,
  lagInFrame(t) OVER w AS before_t, lagInFrame(total) OVER w AS before_total, leadInFrame(toUInt8(1)) OVER w AS has_next,
  leadInFrame(t) OVER w AS next_t, leadInFrame(total) OVER w AS next_total, ${raw(more)}`,
    window: raw(
      'PARTITION BY series, is_delta, life ORDER BY t ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING',
    ),
  })
  return sql`SELECT *, ${stepAt('t')} AS step, ${stepAt('next_t')} AS next_step,
  is_delta OR (nth > 1 AND total < before_total) AS starts_anew,
  ${inside('t')} AND (is_delta OR nth > 1 OR (s >= ${raw((-reachNs).toString())} AND s < t)) AS counted,
  has_next AND NOT is_delta AND next_total >= total AND ${inside('next_t')} AS next_linked
FROM (${neighbours})`
}

const exponentialEdge = (index: string): string => `pow(2., (${index}) * pow(2., -Scale))`

/**
 * Edges in any order and, for each, the number of observations between it and the next lower edge. The lowest
 * edge has none; it is where the lowest bucket begins.
 */
const buckets = {
  histogram: {
    columns: 'BucketCounts, ExplicitBounds',
    edges:
      'if(empty(BucketCounts), [], arrayPushFront(arrayPushBack(ExplicitBounds, inf), least(0., ExplicitBounds[1])))',
    counts:
      'if(empty(BucketCounts), [], arrayPushFront(arrayMap(x -> toInt64(x), arrayResize(BucketCounts, length(ExplicitBounds) + 1)), toInt64(0)))',
  },
  exponential_histogram: {
    columns: 'Scale, ZeroCount, PositiveOffset, PositiveBucketCounts, NegativeOffset, NegativeBucketCounts',
    edges: `arrayConcat(
    arrayMap(i -> -${exponentialEdge('NegativeOffset + i')}, range(if(empty(NegativeBucketCounts), 0, toUInt32(length(NegativeBucketCounts) + 1)))),
    [0.],
    arrayMap(i -> ${exponentialEdge('PositiveOffset + i')}, range(if(empty(PositiveBucketCounts), 0, toUInt32(length(PositiveBucketCounts) + 1)))))`,
    counts: `arrayConcat(
    if(empty(NegativeBucketCounts), [], arrayPushBack(arrayMap(x -> toInt64(x), NegativeBucketCounts), toInt64(0))),
    [toInt64(ZeroCount)],
    if(empty(PositiveBucketCounts), [], arrayPushFront(arrayMap(x -> toInt64(x), PositiveBucketCounts), toInt64(0))))`,
  },
} as const

/** `buckets` is (edges ascending, counts, ones). */
function interpolated(quantile: number): Sql {
  return sql`arrayMap(below -> (
    arrayMap(rank -> (
      arrayMap(i -> multiIf(
          i = 0, nan,
          i = 1, buckets.1[1],
          isInfinite(buckets.1[i]), buckets.1[i - 1],
          buckets.1[i - 1] + (buckets.1[i] - buckets.1[i - 1]) * (rank - below[i - 1]) / (below[i] - below[i - 1])
        ), [arrayFirstIndex((c, n) -> n > 0 AND c >= rank, below, buckets.2)])[1]
    ), [below[-1] * ${raw(String(quantile))}])[1]
  ), [arrayCumSum(buckets.2)])[1]`
}
