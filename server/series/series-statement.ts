// Parts of all series statements: the step of a row on the time axis, its group, and how rows of (group,
// step, value) become one result. The engine packs several groups, so that it can select the busiest. A
// single series is returned row by row, because another level of the statement would cost more than its rows.
// All time inside a statement is relative to the start of the series, in nanoseconds as Int64, which is
// exact.

import assert from 'node:assert/strict'
import type { Ns } from '../../contract/values/instant.ts'
import { nsPerSecond } from '../../contract/values/instant.ts'
import { attribute, hasAttribute } from '../telemetry/attribute.ts'
import { join, raw, type Sql, sql, uint } from '../telemetry/sql.ts'

/** Functions over one value for each underlying series. */
export type Across = 'avg' | 'sum' | 'min' | 'max'

/** `service`, an attribute key, or several keys. */
export type GroupBy = string | readonly string[]

/** The aligned time axis of one request, with its filters. */
export interface SeriesFrame {
  readonly startNs: Ns
  readonly endNs: Ns
  readonly stepSeconds: number
  readonly service: string | undefined
  readonly attributes: readonly (readonly [key: string, value: string])[]
  readonly groupBy: GroupBy | undefined
  readonly maxGroups: number
  /** The most UTF-8 bytes of the JSON text of a group; no limit where absent. See {@link hasLongName}. */
  readonly groupBytesMax?: number | undefined
  /** How the last values of several underlying series are combined; `avg` where absent. */
  readonly across?: Across | undefined
  /**
   * The instant up to which there may be rows, where it is inside the last step: that step is not complete
   * yet.
   */
  readonly untilNs?: Ns | undefined
  /** The time whose rows count, where the first or the last step extends beyond it. */
  readonly counted?: { readonly startNs: Ns; readonly endNs: Ns } | undefined
  /** The members of a statement for several requests that differ in nothing else; each is a group. */
  readonly members?: readonly SeriesMember[] | undefined
}

/**
 * One of several requests: its metric where that is one of OpenTelemetry, and its service where it has one.
 */
export interface SeriesMember {
  readonly metric: string | undefined
  readonly service: string | undefined
}

/** A step of a single series in a result; 64-bit integers are text. */
interface StepRow {
  readonly step: number
  readonly reading: number | null
  readonly amount: number | string | null
  readonly counting?: number
  readonly unit?: string
}

/** A row of the result of a statement from {@link packed}; {@link groupsOf} reads it. */
export type SeriesRow = PackedGroup | StepRow

/**
 * One group in the result of a packed statement. Steps without a row are absent; null is a number that JSON
 * can't represent.
 */
export interface PackedGroup {
  /** With members, the metric and the service of one; empty where it has none. */
  readonly grp: string | readonly [metric: string, service: string]
  readonly steps: readonly number[]
  readonly readings: readonly (number | null)[]
  readonly amounts: readonly (number | null)[]
  /** The number of groups before the limit. */
  readonly groups: number
  /** 1 where a step without rows is zero, 0 where it has no data. */
  readonly counting: number
  /** UCUM, for a metric whose unit is found by reading it. */
  readonly unit?: string
}

export function stepNs(frame: SeriesFrame): Ns {
  return BigInt(frame.stepSeconds) * nsPerSecond
}

export function lengthNs(frame: SeriesFrame): Ns {
  return frame.endNs - frame.startNs
}

/** The time whose rows count. */
export function countedRange(frame: Pick<SeriesFrame, 'startNs' | 'endNs' | 'counted'>): {
  readonly startNs: Ns
  readonly endNs: Ns
} {
  return frame.counted ?? frame
}

/** The same, relative to the start of the series. */
export function countedNs(frame: SeriesFrame): { readonly from: Ns; readonly to: Ns } {
  const { startNs, endNs } = countedRange(frame)
  return { from: startNs - frame.startNs, to: endNs - frame.startNs }
}

/** The part of the counted time that has passed, relative to the start of the series. */
export function passedNs(frame: SeriesFrame): Ns {
  const { endNs } = countedRange(frame)
  const { startNs, untilNs } = frame
  return (untilNs === undefined || untilNs > endNs ? endNs : untilNs) - startNs
}

/** Number of intervals after which the next point of a series is late, as in Prometheus. */
export const lateAfter = 1.1

/** The relative time at and before which a start counts as unknown: senders that don't know it send 1970. */
export function unknownStart({ startNs }: SeriesFrame): Ns {
  return nsPerSecond - startNs
}

/** A time or a length as Int64: the engine reads a large plain number as unsigned. */
export function int64(ns: Ns): Sql {
  return raw(`toInt64(${ns.toString()})`)
}

/** Nanoseconds from the start of the series, Int64. */
export function relativeTime(frame: SeriesFrame, timeColumn: string): Sql {
  return sql`(toUnixTimestamp64Nano(${raw(timeColumn)}) - ${raw(frame.startNs.toString())})`
}

/** The step of a row inside the series, UInt32. */
function stepOf(frame: SeriesFrame, timeColumn: string): Sql {
  return sql`toUInt32(intDiv(${relativeTime(frame, timeColumn)}, ${raw(stepNs(frame).toString())}))`
}

/**
 * The group of a row; for several keys the JSON text of their values; the empty text where no groups are
 * requested.
 */
export function groupOf(frame: SeriesFrame, attributesColumn: string): Sql {
  if (frame.members !== undefined) return memberOf(frame.members)
  if (frame.groupBy === undefined) return raw(`''`)
  const keyOf = (key: string) =>
    key === 'service' ? raw('toString(ServiceName)') : attribute(attributesColumn, key)
  if (typeof frame.groupBy === 'string') return keyOf(frame.groupBy)
  return sql`toJSONString([${join(frame.groupBy.map(keyOf), ', ')}])`
}

/**
 * Returns the value of a group for each key, in their order, from the text of {@link groupOf}; empty where no
 * groups are requested.
 */
export function labelsOf(groupBy: GroupBy | undefined, group: string | null): [key: string, value: string][] {
  if (groupBy === undefined || group === null) return []
  if (typeof groupBy === 'string') return [[groupBy, group]]
  const values: unknown = JSON.parse(group)
  assert(Array.isArray(values), 'A group of several keys is a list')
  return groupBy.map((key, i) => [key, String(values[i])])
}

/** How the engine names a group whose own name is too long, before a hash that tells it from others. */
const longName = '\0'

/** Whether a group has a longer name than the frame allows. Such groups come last, without their names. */
export function hasLongName({ groupBytesMax }: SeriesFrame, { grp }: Pick<PackedGroup, 'grp'>): boolean {
  return groupBytesMax !== undefined && String(grp).startsWith(longName)
}

/** The name of a group from the column with its whole name. */
function nameWithin({ groupBy, groupBytesMax }: SeriesFrame, column: string): Sql {
  if (groupBytesMax === undefined) return raw(column)
  const json = raw(typeof groupBy === 'string' ? `toJSONString(${column})` : column)
  const hashed = sql`concat(${longName}, toString(cityHash64(${raw(column)})))`
  return sql`if(length(${json}) > ${uint(groupBytesMax)}, ${hashed}, ${raw(column)})`
}

/** The member of a row, as in {@link PackedGroup}. */
function memberOf([first]: readonly SeriesMember[]): Sql {
  const metric = raw(first?.metric === undefined ? `''` : 'toString(MetricName)')
  const service = raw(first?.service === undefined ? `''` : 'toString(ServiceName)')
  return sql`tuple(${metric}, ${service})`
}

/** Condition of rows of any member. Either all members have a metric or none has; likewise for services. */
function memberConditions(members: readonly SeriesMember[]): Sql[] {
  const columns = [
    ...(members[0]?.metric === undefined ? [] : ['MetricName']),
    ...(members[0]?.service === undefined ? [] : ['ServiceName']),
  ]
  if (columns.length === 0) return []
  const listed = members.map(({ metric, service }) => {
    const own = [metric, service].filter((text) => text !== undefined)
    return sql`(${join(
      own.map((text) => sql`${text}`),
      ', ',
    )})`
  })
  return [sql`(${raw(columns.join(', '))}) IN (${join(listed, ', ')})`]
}

/** Conditions of the rows to read, besides their time. */
export function subjectConditions(frame: SeriesFrame): Sql[] {
  if (frame.members !== undefined) return memberConditions(frame.members)
  return frame.service === undefined ? [] : [sql`ServiceName = ${frame.service}`]
}

export function attributeConditions(frame: SeriesFrame, attributesColumn: string): Sql[] {
  return frame.attributes.map(([key, value]) => hasAttribute(attributesColumn, key, value))
}

/** The group and step of a row, as columns and as the key to group by. A single series has no group. */
export function groupingOf(
  frame: SeriesFrame,
  attributesColumn: string,
  timeColumn: string,
): { readonly columns: Sql; readonly key: Sql } {
  const step = sql`${stepOf(frame, timeColumn)} AS step`
  const columns = isSingle(frame) ? step : sql`${groupOf(frame, attributesColumn)} AS grp, ${step}`
  return { columns, key: groupingKey(frame) }
}

export function groupingKey(frame: SeriesFrame): Sql {
  return raw(isSingle(frame) ? 'step' : 'grp, step')
}

/**
 * Packs rows of (grp, step, reading, amount) into one row for each group, the busiest first. Rows of a single
 * series are returned unchanged. `counting` is an aggregate over the rows; `more` adds further ones.
 */
export function packed(frame: SeriesFrame, rows: Sql, counting: Sql, more: Sql = raw('')): Sql {
  if (isSingle(frame)) return rows
  const columns = sql`groupArray(step) AS steps, groupArray(ifNull(reading, nan)) AS readings, groupArray(toFloat64(amount)) AS amounts, ${counting} AS counting${more}`
  if (frame.members !== undefined)
    return sql`SELECT grp, ${columns}, 1 AS groups FROM (${rows}) GROUP BY grp LIMIT ${uint(frame.members.length)}`
  const name = nameWithin(frame, 'found.grp')
  const longLast = frame.groupBytesMax === undefined ? raw('') : sql`startsWith(${name}, ${longName}), `
  return sql`SELECT ${name} AS grp, ${columns}, count() OVER () AS groups FROM (${rows}) AS found
GROUP BY found.grp ORDER BY ${longLast}sum(amount) DESC, found.grp LIMIT ${uint(frame.maxGroups)}`
}

/**
 * Returns the groups of a packed statement. Without groups there is exactly one, also where no row was found;
 * `counting` is its value where the rows don't have it.
 */
export function groupsOf(frame: SeriesFrame, rows: readonly SeriesRow[], counting: boolean): PackedGroup[] {
  const groups = rows.filter((row): row is PackedGroup => 'steps' in row)
  if (!isSingle(frame)) return groups
  const steps = rows.filter((row): row is StepRow => !('steps' in row))
  const [first] = steps
  const isCounting = first?.counting === undefined ? counting : steps.some((row) => row.counting === 1)
  return [
    {
      grp: '',
      steps: steps.map(({ step }) => step),
      readings: steps.map(({ reading }) => reading),
      amounts: steps.map(({ amount }) => (amount === null ? null : Number(amount))),
      groups: 1,
      counting: isCounting ? 1 : 0,
      ...(first?.unit === undefined ? {} : { unit: first.unit }),
    },
  ]
}

function isSingle({ groupBy, members }: SeriesFrame): boolean {
  return groupBy === undefined && members === undefined
}
