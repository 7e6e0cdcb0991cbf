// The parts that every series statement is made of: where a row falls on the time axis, which group it belongs
// to, and how the many (group, step, value) rows are packed so that one statement answers one request. All time
// inside a statement is relative to the start of the series, in nanoseconds as Int64, which is exact.

import type { Ns } from '../../contract/instant.ts'
import { nsPerSecond } from '../../contract/instant.ts'
import { join, raw, type Sql, sql, uint } from './sql.ts'
import { rangeCondition } from './tenant-reader.ts'

/** The time axis of one request, aligned, and what narrows it. */
export interface SeriesFrame {
  readonly startNs: Ns
  readonly endNs: Ns
  readonly stepSeconds: number
  readonly service: string | undefined
  readonly attributes: readonly (readonly [key: string, value: string])[]
  readonly groupBy: string | undefined
  readonly maxGroups: number
  /** Where one statement answers several requests that differ in nothing else: theirs, and each is a group. */
  readonly members?: readonly SeriesMember[] | undefined
}

/** A request among others: the metric where it is one of OpenTelemetry, and its service where it names one. */
export interface SeriesMember {
  readonly metric: string | undefined
  readonly service: string | undefined
}

/** One group as a packed statement answers it. Steps without a row are absent; null is a number JSON can't hold. */
export interface PackedGroup {
  /** With members, the metric and the service of one, empty where it has none. */
  readonly grp: string | readonly [metric: string, service: string]
  readonly steps: readonly number[]
  readonly readings: readonly (number | null)[]
  readonly amounts: readonly (number | null)[]
  /** How many groups there are before the limit. */
  readonly groups: number
  /** 1 where a step without rows is zero, 0 where it is no data. */
  readonly counting: number
}

export function stepNs(frame: SeriesFrame): Ns {
  return BigInt(frame.stepSeconds) * nsPerSecond
}

export function lengthNs(frame: SeriesFrame): Ns {
  return frame.endNs - frame.startNs
}

/** Nanoseconds from the start of the series, Int64. */
export function relativeTime(frame: SeriesFrame, timeColumn: string): Sql {
  return sql`(toUnixTimestamp64Nano(${raw(timeColumn)}) - ${raw(frame.startNs.toString())})`
}

/** The step of a row inside the series, UInt32. */
export function stepOf(frame: SeriesFrame, timeColumn: string): Sql {
  return sql`toUInt32(intDiv(${relativeTime(frame, timeColumn)}, ${raw(stepNs(frame).toString())}))`
}

/** Whether a row lies inside the series, for statements that read around it. */
export function isInside(frame: SeriesFrame, timeColumn: string): Sql {
  return rangeCondition(timeColumn, frame)
}

/** An attribute of the record itself or, where it has none of that name, of its resource; empty where neither has. */
export function attribute(attributesColumn: string, key: string): Sql {
  const own = raw(attributesColumn)
  return sql`if(mapContains(${own}, ${key}), ${own}[${key}], ResourceAttributes[${key}])`
}

/** The group a row belongs to; the empty text where groups were not asked for. */
export function groupOf(frame: SeriesFrame, attributesColumn: string): Sql {
  if (frame.members !== undefined) return memberOf(frame.members)
  if (frame.groupBy === undefined) return raw(`''`)
  if (frame.groupBy === 'service') return raw('toString(ServiceName)')
  return attribute(attributesColumn, frame.groupBy)
}

/** The member a row belongs to, as {@link PackedGroup} has it. */
function memberOf([first]: readonly SeriesMember[]): Sql {
  const metric = raw(first?.metric === undefined ? `''` : 'toString(MetricName)')
  const service = raw(first?.service === undefined ? `''` : 'toString(ServiceName)')
  return sql`tuple(${metric}, ${service})`
}

/** Rows of any member. All members have a metric or none has, and so with services. */
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

/** Which rows of a table are read at all, beyond their time. */
export function subjectConditions(frame: SeriesFrame): Sql[] {
  if (frame.members !== undefined) return memberConditions(frame.members)
  return frame.service === undefined ? [] : [sql`ServiceName = ${frame.service}`]
}

export function attributeConditions(frame: SeriesFrame, attributesColumn: string): Sql[] {
  return frame.attributes.map(([key, value]) => sql`${attribute(attributesColumn, key)} = ${value}`)
}

/**
 * Packs rows of (grp, step, reading, amount) into one row per group, the busiest first. Without groups there is
 * exactly one row, also where nothing was found. `counting` is an aggregate over the rows.
 */
export function packed(frame: SeriesFrame, rows: Sql, counting: Sql): Sql {
  const columns = sql`groupArray(step) AS steps, groupArray(reading) AS readings, groupArray(toFloat64(amount)) AS amounts, ${counting} AS counting`
  if (frame.members !== undefined)
    return sql`SELECT grp, ${columns}, 1 AS groups FROM (${rows}) GROUP BY grp LIMIT ${uint(frame.members.length)}`
  if (frame.groupBy === undefined) return sql`SELECT '' AS grp, ${columns}, 1 AS groups FROM (${rows})`
  return sql`SELECT grp, ${columns}, count() OVER () AS groups FROM (${rows})
GROUP BY grp ORDER BY sum(amount) DESC, grp LIMIT ${uint(frame.maxGroups)}`
}
