// Reads a regular time series from raw telemetry, for charts and for detectors. Three cases are
// distinguished: a step with a value, a step without data (NaN), and a step that is unknown because its
// telemetry was erased or is being erased (`unknown`, and NaN). Where events are counted, a step without
// events is zero, but only after the first row of the service, or of the group where the series is grouped;
// before that there is no data.

import assert from 'node:assert/strict'
import type { Aggregation } from '../../contract/telemetry/queries.ts'
import type { Ns } from '../../contract/values/instant.ts'
import { nsPerSecond } from '../../contract/values/instant.ts'
import { markTouched } from '../core/time-range.ts'
import type { StatementLimits } from '../telemetry/engine.ts'
import type { Signal } from '../telemetry/schema/tables.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import {
  type EventSeries,
  earlierStatement,
  eventSeriesOf,
  eventStatement,
  signalsOf,
} from './event-series.ts'
import { readMetric } from './metric-reading.ts'
import {
  type Across,
  countedRange,
  type GroupBy,
  groupsOf,
  hasLongName,
  type PackedGroup,
  type SeriesFrame,
  type SeriesRow,
  stepNs,
} from './series-statement.ts'

/** The most steps of one request: a week of minutes fits, and a result stays below a megabyte per group. */
export const maxSteps = 11_000

export interface SeriesRequest {
  /** An OpenTelemetry metric name, or a built-in key of `event-series.ts`. */
  readonly metricKey: string
  readonly service?: string | undefined
  /** A row must match all of them; looked up on the point, span or record first and then on its resource. */
  readonly attributes?: Readonly<Record<string, string>> | readonly (readonly [string, string])[] | undefined
  readonly groupBy?: GroupBy | undefined
  /** The default of the metric where absent, or where the metric does not have it. */
  readonly aggregation?: Aggregation | undefined
  readonly startNs: Ns
  /** Exclusive. */
  readonly endNs: Ns
  /**
   * Steps begin at multiples of their length since 1970. Where this is set, the first and the last step count
   * only the requested time; otherwise the requested time is extended to whole steps.
   */
  readonly isExact?: boolean
  readonly stepSeconds: number
  /** The present, for requests that include an incomplete step: its rate is over the part that has passed. */
  readonly nowNs?: Ns | undefined
  /** The most groups; those with the largest volume are kept. */
  readonly maxGroups: number
  /** Groups whose name as JSON text has more UTF-8 bytes are left out and counted; no limit where absent. */
  readonly groupBytesMax?: number | undefined
  /** For `last`; `avg` where absent. */
  readonly across?: Across | undefined
  /**
   * Set where the caller knows that the counted subject existed before the series begins; saves the lookup.
   */
  readonly isBorn?: boolean | undefined
}

export interface SeriesGroup {
  /**
   * Null where no groups are requested; empty where a row doesn't have the attribute. For several keys see
   * `labelsOf`.
   */
  readonly group: string | null
  /** One for each step; NaN is no data. */
  readonly values: Float64Array
  /** Number of events or points of each value; zero where there are none. */
  readonly volume: Float64Array
}

export interface SeriesSet {
  readonly metricKey: string
  /** UCUM, as the metric gives it; a rate adds `/s`. Empty where unknown. */
  readonly unit: string
  /** The signals from which the values are derived: an erasure of any of them makes values unknown. */
  readonly signals: readonly Signal[]
  /** The aggregation that was used. */
  readonly aggregation: Aggregation
  readonly stepSeconds: number
  /** Start of step 0; step i begins `i * stepSeconds` later. */
  readonly startNs: Ns
  /** The time whose rows count; it may begin inside the first step and end inside the last. */
  readonly counted: { readonly startNs: Ns; readonly endNs: Ns }
  readonly steps: number
  /** Number of groups above `maxGroups`. */
  readonly truncatedGroups: number
  /** Number of groups that there was room for, but whose names are longer than `groupBytesMax`. */
  readonly longGroups: number
  /** Whether a step without rows is zero. */
  readonly counting: boolean
  /** For each step, 1 where it overlaps erased or hidden time; the values of all groups are NaN there. */
  readonly unknown: Uint8Array
  /** The busiest first. Empty where the metric is unknown or has no rows. */
  readonly groups: readonly SeriesGroup[]
}

/**
 * Returns the number of steps of a request after its bounds are aligned; callers compare it with {@link
 * maxSteps}.
 */
export function countSteps(request: Pick<SeriesRequest, 'startNs' | 'endNs' | 'stepSeconds'>): number {
  const step = BigInt(request.stepSeconds) * nsPerSecond
  return Number((request.endNs + step - 1n) / step - request.startNs / step)
}

/** Reads one series set. The caller has checked that there are 1 to {@link maxSteps} steps. */
export async function readSeries(
  reader: TenantReader,
  request: SeriesRequest,
  limits?: StatementLimits,
): Promise<SeriesSet> {
  const frame = frameOf(request)
  const builtIn = eventSeriesOf(request.metricKey)
  if (builtIn !== undefined) return readEvents(reader, request, frame, builtIn, limits)
  const { aggregation: asked, metricKey: metric } = request
  const reading = await readMetric({ reader, frame, metric, asked, limits })
  return setOf(reader, frame, reading === null ? nothingOf(request) : { metricKey: metric, ...reading })
}

/** The aligned time axis of a request. */
export function frameOf(request: SeriesRequest): SeriesFrame {
  const steps = countSteps(request)
  assert(Number.isInteger(request.stepSeconds) && request.stepSeconds > 0)
  assert(steps > 0 && steps <= maxSteps, `A series has 1 to ${maxSteps} steps, not ${steps}`)
  const step = BigInt(request.stepSeconds) * nsPerSecond
  const startNs = (request.startNs / step) * step
  const endNs = startNs + BigInt(steps) * step
  const given = request.attributes ?? []
  const isNarrower = request.isExact === true && (request.startNs > startNs || request.endNs < endNs)
  return {
    startNs,
    endNs,
    counted: isNarrower ? { startNs: request.startNs, endNs: request.endNs } : undefined,
    stepSeconds: request.stepSeconds,
    service: request.service,
    attributes: Array.isArray(given) ? given : Object.entries(given),
    groupBy: request.groupBy,
    maxGroups: request.maxGroups,
    groupBytesMax: request.groupBytesMax,
    across: request.across,
    untilNs: request.nowNs,
  }
}

async function readEvents(
  reader: TenantReader,
  request: SeriesRequest,
  frame: SeriesFrame,
  series: EventSeries,
  limits: StatementLimits | undefined,
): Promise<SeriesSet> {
  const { aggregation, unit } = eventChoice(series, request.aggregation)
  const found = await reader.rows<SeriesRow>(
    (from) => eventStatement(from, frame, series, aggregation),
    limits,
  )
  const packed = groupsOf(frame, found, series.counting)
  const rows = aggregation === 'rate' ? overCounted(frame, packed) : packed
  const livedBefore = request.isBorn === true || (await hasEventsBefore(reader, frame, series, rows, limits))
  return setOf(reader, frame, { metricKey: request.metricKey, unit, aggregation, rows, livedBefore })
}

/** Converts rates over whole steps into rates over the counted part of each step. */
function overCounted(frame: SeriesFrame, rows: readonly PackedGroup[]): readonly PackedGroup[] {
  if (frame.counted === undefined) return rows
  return rows.map((row) => ({
    ...row,
    readings: row.readings.map((reading, i) => {
      const { startNs, endNs } = countedOf(frame, row.steps[i] ?? 0)
      return reading === null ? null : (reading * Number(stepNs(frame))) / Number(endNs - startNs)
    }),
  }))
}

/** Returns how a built-in series is read, and its unit. */
export function eventChoice(
  series: EventSeries,
  asked: Aggregation | undefined,
): Pick<SeriesSet, 'aggregation' | 'unit'> {
  const [own] = series.aggregations
  assert(own !== undefined)
  const aggregation = asked !== undefined && series.aggregations.includes(asked) ? asked : own
  const counted = series.unit.replace(/\/s$/, '')
  return { aggregation, unit: aggregation === 'rate' ? `${counted}/s` : counted }
}

/**
 * Whether the counted events began before the series. It is read only where the result depends on it. For a
 * group it would scan the whole history, so a group begins with its first row in the series.
 */
export async function hasEventsBefore(
  reader: TenantReader,
  frame: SeriesFrame,
  series: EventSeries,
  rows: readonly PackedGroup[],
  limits: StatementLimits | undefined,
): Promise<boolean> {
  if (!series.counting || frame.groupBy !== undefined || rows[0]?.steps.includes(0)) return false
  const found = await reader.rows((from) => earlierStatement(from, frame, series), limits)
  return found.length > 0
}

/** The reading of a metric without points. */
export function nothingOf(request: SeriesRequest): SeriesReading {
  return { metricKey: request.metricKey, unit: '', aggregation: request.aggregation ?? 'avg', rows: [] }
}

/** The results of the statements for one request. */
export interface SeriesReading {
  readonly metricKey: string
  readonly unit: string
  readonly aggregation: Aggregation
  readonly rows: readonly PackedGroup[]
  readonly livedBefore?: boolean
}

/** Reads what is unknown after the rows, so that what was hidden meanwhile stays hidden. */
export function setOf(reader: TenantReader, frame: SeriesFrame, reading: SeriesReading): SeriesSet {
  const { metricKey, unit, aggregation, rows } = reading
  const steps = Number((frame.endNs - frame.startNs) / stepNs(frame))
  const unknown = unknownSteps(reader, frame, signalsOf(metricKey), steps)
  const livedBefore = reading.livedBefore === true
  const named = rows.filter((row) => !hasLongName(frame, row))
  const leftOut = Math.max(0, Number(rows[0]?.groups ?? 0) - named.length)
  // Long names come last: where one was read, no other group was left out.
  const isOfLong = named.length < rows.length
  const living = named.filter((row) => row.steps.length > 0 || livedBefore)
  return {
    metricKey,
    unit,
    signals: signalsOf(metricKey),
    aggregation,
    stepSeconds: frame.stepSeconds,
    startNs: frame.startNs,
    counted: countedRange(frame),
    steps,
    truncatedGroups: isOfLong ? 0 : leftOut,
    longGroups: isOfLong ? leftOut : 0,
    counting: eventSeriesOf(metricKey)?.counting ?? rows.some((row) => row.counting === 1),
    unknown,
    groups: living.map((row) => ({
      group: frame.groupBy === undefined ? null : String(row.grp),
      ...filled(row, unknown, livedBefore),
    })),
  }
}

function filled(row: PackedGroup, unknown: Uint8Array, livedBefore: boolean): Omit<SeriesGroup, 'group'> {
  const values = new Float64Array(unknown.length).fill(Number.NaN)
  const volume = new Float64Array(unknown.length)
  if (row.counting === 1) {
    const born = livedBefore ? 0 : row.steps.reduce((least, step) => Math.min(least, step), unknown.length)
    values.fill(0, born)
  }
  for (const [i, step] of row.steps.entries()) {
    values[step] = row.readings[i] ?? Number.NaN
    volume[step] = row.amounts[i] ?? 0
  }
  for (let step = unknown.indexOf(1); step >= 0; step = unknown.indexOf(1, step + 1)) {
    values[step] = Number.NaN
    volume[step] = 0
  }
  return { values, volume }
}

/** The counted part of each step. */
export function countedOf(
  frame: Pick<SeriesFrame, 'startNs' | 'endNs' | 'stepSeconds' | 'counted'>,
  index: number,
): { readonly startNs: Ns; readonly endNs: Ns } {
  const step = BigInt(frame.stepSeconds) * nsPerSecond
  const startNs = frame.startNs + BigInt(index) * step
  const counted = countedRange(frame)
  return {
    startNs: startNs > counted.startNs ? startNs : counted.startNs,
    endNs: startNs + step < counted.endNs ? startNs + step : counted.endNs,
  }
}

function unknownSteps(
  reader: TenantReader,
  frame: SeriesFrame,
  signals: readonly Signal[],
  steps: number,
): Uint8Array {
  const unknown = new Uint8Array(steps)
  const all = { ...countedRange(frame), originNs: frame.startNs, stepNs: stepNs(frame) }
  for (const signal of signals)
    markTouched(unknown, reader.gate.unknownTime(reader.place.tenantId, signal, frame), all)
  return unknown
}
