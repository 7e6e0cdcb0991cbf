// Reads when services were deployed, from the versions in their telemetry and from log events named
// `deployment`. It is read like all telemetry and not stored, so what is hidden or erased reveals no deploy.
//
// The cost is limited: the engine counts versions by bucket of time, and at most 200 versions of each service
// in a window are read. A service with more, such as one that names each request as a version, has no
// deploys, nor has one whose name is longer than a query may name.

import { longestName } from '../../contract/telemetry/queries.ts'
import { type Ns, nsPerMinute } from '../../contract/values/instant.ts'
import { AppError } from '../core/app-error.ts'
import { pairIn } from '../telemetry/attribute.ts'
import type { StatementLimits } from '../telemetry/engine.ts'
import { type TableSpec, tables } from '../telemetry/schema/tables.ts'
import { join, raw, type Sql, sql, strings, uint } from '../telemetry/sql.ts'
import { type From, rangeCondition, type TenantReader } from '../telemetry/tenant-reader.ts'
import { byTime, type DeployEvent, deploysOf, type KnownDeploy, type SeenVersion } from './deploys.ts'

export interface DeployWindow {
  readonly startNs: Ns
  readonly endNs: Ns
}

interface DeployRequest {
  /** In order of time, with gaps longer than the look back; at least one. Deploys in them are returned. */
  readonly windows: readonly DeployWindow[]
  /** How long before a window earlier versions are looked up; six hours where absent. */
  readonly lookbackNs?: Ns
  /** Services whose deploys are returned; all where absent. */
  readonly services?: readonly string[] | undefined
}

interface DeploysRead {
  /** Oldest first. */
  readonly deploys: readonly KnownDeploy[]
  /** Services with too many versions for any to count as a deploy, in order of their names. */
  readonly restless: readonly string[]
}

const usualLookbackNs = 6n * 60n * nsPerMinute
/** Versions of a service in an environment and a window. */
const versionsMax = 200
/** Rows of all services together. */
const rowsMax = 20_000
const eventsMax = 1_000
/** Buckets of a window, so that the number of groups does not grow with it. */
const bucketsMax = 3_000n
/** Sightings that are closer than this are one stretch. */
const leastPauseNs = 5n * nsPerMinute
/** The most bytes that versions and their stretches may take. */
const resultBytes = 16 << 20

/** Returns the deploys in the windows. Throws `query_too_expensive` where reading them exceeds the limits. */
export function readDeploys(
  reader: TenantReader,
  { lookbackNs = usualLookbackNs, services, windows }: DeployRequest,
  limits: StatementLimits,
): Promise<DeploysRead> {
  return reader.together(async () => {
    const frame = frameOf(windows, lookbackNs)
    const bounded = { ...limits, maxResultBytes: resultBytes }
    const versions = await reader.rows<VersionRow>(
      (from) => versionsStatement(from, frame, services),
      bounded,
    )
    const events = await reader.rows<EventRow>((from) => eventsStatement(from, frame, services), bounded)
    if (versions.length > rowsMax) throw new AppError('query_too_expensive')
    const restless = new Set<string>()
    const deploys = windows.flatMap(({ endNs, startNs }, part) => {
      const own = versions.filter((row) => row.part === part)
      const subjects = Map.groupBy(own, (row) => JSON.stringify([row.service, row.environment]))
      for (const [{ service }, ...more] of nonEmpty(subjects.values()))
        if (more.length >= versionsMax) restless.add(service)
      const seen = own.filter(({ service }) => !restless.has(service)).map(seenOf)
      const deployEvents = events.filter((row) => row.part === part).map(eventOf)
      return deploysOf(seen, deployEvents).filter(({ atNs }) => atNs >= startNs && atNs < endNs)
    })
    return { deploys: deploys.sort(byTime), restless: [...restless].sort() }
  })
}

function* nonEmpty<T>(lists: Iterable<readonly T[]>): Generator<readonly [T, ...T[]]> {
  for (const [first, ...rest] of lists) if (first !== undefined) yield [first, ...rest]
}

/** The windows with the time before each, and the length of buckets. */
interface Frame {
  readonly windows: readonly DeployWindow[]
  readonly bucketNs: Ns
  readonly pauseNs: Ns
}

function frameOf(windows: readonly DeployWindow[], lookbackNs: Ns): Frame {
  let longestNs = 0n
  const widened = windows.map(({ endNs, startNs }) => {
    const fromNs = startNs > lookbackNs ? startNs - lookbackNs : 0n
    if (endNs - fromNs > longestNs) longestNs = endNs - fromNs
    return { startNs: fromNs, endNs }
  })
  const minutes = longestNs / (bucketsMax * nsPerMinute) + 1n
  const bucketNs = minutes * nsPerMinute
  return { windows: widened, bucketNs, pauseNs: 2n * bucketNs > leastPauseNs ? 2n * bucketNs : leastPauseNs }
}

interface VersionRow {
  /** Index of the window. */
  readonly part: number
  readonly service: string
  readonly environment: string
  readonly version: string
  readonly buckets: number
  /** First and last sighting of each, nanoseconds. */
  readonly stretches: readonly (readonly [string, string])[]
}

/** The second name is from before version 1.27 of the semantic conventions. */
function environmentOf(column: string): Sql {
  const own = pairIn(column, 'deployment.environment.name')
  return sql`if(${own} != '', ${own}, ${pairIn(column, 'deployment.environment')})`
}

const versionOf = (column: string): Sql => pairIn(column, 'service.version')

/** Longer versions and environments are cut, because they are returned and drawn. */
const shortened = (text: Sql): Sql => sql`substringUTF8(${text}, 1, 200)`

/** A service with a longer name cannot be asked for, and its name would be in each of its deploys. */
const hasName = (service: string): Sql => sql`lengthUTF8(${raw(service)}) <= ${uint(longestName)}`

/**
 * A row for each version that a service showed in a window. The tables hand out their rows and what is
 * computed is written once, because to plan it for each table would take longer than to read a window.
 */
function versionsStatement(from: From, frame: Frame, services: readonly string[] | undefined): Sql {
  const rows = tables.map((table) => sightingsIn(from, table, frame, services))
  const buckets = sql`SELECT ${partOf('time', frame)} AS part, service, ${shortened(environmentOf('resource'))} AS environment,
  ${shortened(versionOf('resource'))} AS version, intDiv(toUnixTimestamp64Nano(time), ${uint(frame.bucketNs)}) AS bucket,
  toUnixTimestamp64Nano(min(time)) AS first_ns, toUnixTimestamp64Nano(max(time)) AS last_ns
FROM (${join(rows, ' UNION ALL ')}) WHERE version != '' GROUP BY part, service, environment, version, bucket`
  const seen = sql`SELECT part, service, environment, version, arraySort(groupArray((first_ns, last_ns))) AS seen
FROM (${buckets}) GROUP BY part, service, environment, version`
  const isNew = sql`arrayMap((one, before) -> one.1 - before.2 > ${uint(frame.pauseNs)}, seen, arrayPushFront(arrayPopBack(seen), seen[1]))`
  return sql`SELECT part, toString(service) AS service, toString(environment) AS environment, toString(version) AS version,
  toUInt32(length(seen)) AS buckets,
  arrayMap(run -> (toString(run[1].1), toString(run[-1].2)), arraySplit((one, is_new) -> is_new, seen, ${isNew})) AS stretches
FROM (${seen}) ORDER BY part, service, environment, seen[1].1, version
LIMIT ${uint(versionsMax + 1)} BY part, service, environment LIMIT ${uint(rowsMax + 1)}`
}

function sightingsIn(
  from: From,
  { name, timeColumn }: TableSpec,
  frame: Frame,
  services: readonly string[] | undefined,
): Sql {
  return from.select(name, {
    columns: sql`ServiceName AS service, ResourceAttributesPairs AS resource, ${raw(timeColumn)} AS time`,
    conditions: [
      ...withinWindows(timeColumn, frame),
      hasName('ServiceName'),
      ...(services === undefined ? [] : [sql`has(${strings(services)}, ServiceName)`]),
    ],
  })
}

/** The index of the window that an instant of one of them is in. */
function partOf(timeColumn: string, { windows }: Frame): Sql {
  const cases = windows
    .slice(0, -1)
    .map(({ endNs }, i) => sql`${rangeCondition(timeColumn, { startNs: null, endNs })}, ${uint(i)}`)
  const last = sql`${uint(windows.length - 1)}`
  return cases.length === 0 ? sql`toUInt32(${last})` : sql`toUInt32(multiIf(${join(cases, ', ')}, ${last}))`
}

/** The whole time first, which the engine finds partitions by. */
function withinWindows(timeColumn: string, { windows }: Frame): Sql[] {
  const whole = { startNs: windows[0]?.startNs ?? 0n, endNs: windows.at(-1)?.endNs ?? 0n }
  const each = windows.map((window) => sql`(${rangeCondition(timeColumn, window)})`)
  return [rangeCondition(timeColumn, whole), ...(each.length > 1 ? [sql`(${join(each, ' OR ')})`] : [])]
}

interface EventRow {
  readonly part: number
  readonly time_ns: string
  readonly service: string
  readonly environment: string
  readonly version: string
}

/**
 * A row for each log record that is an event named `deployment`, the newest {@link eventsMax}. Its own
 * attributes name what was deployed, because a pipeline may say so; else its resource does. One that says
 * that the deployment failed is none.
 */
function eventsStatement(from: From, frame: Frame, services: readonly string[] | undefined): Sql {
  const own = (key: string) => pairIn('LogAttributesPairs', key)
  const named = own('service.name')
  const of = (key: string, resource: Sql) =>
    sql`multiIf(${own(key)} != '', ${own(key)}, ${named} != '', '', toString(${resource}))`
  const events = from.select('otel_logs', {
    columns: sql`${partOf('Timestamp', frame)} AS part, toString(toUnixTimestamp64Nano(Timestamp)) AS time_ns,
  if(${named} != '', ${named}, toString(ServiceName)) AS service,
  ${shortened(of('deployment.environment.name', environmentOf('ResourceAttributesPairs')))} AS environment,
  ${shortened(of('service.version', versionOf('ResourceAttributesPairs')))} AS version`,
    conditions: [
      ...withinWindows('Timestamp', frame),
      raw(`EventName = 'deployment'`),
      sql`${own('deployment.status')} != 'failed'`,
    ],
  })
  const wanted = services === undefined ? raw('1') : sql`has(${strings(services)}, service)`
  return sql`SELECT * FROM (${events}) WHERE service != '' AND ${hasName('service')} AND ${wanted} ORDER BY toUInt64(time_ns) DESC LIMIT ${uint(eventsMax)}`
}

function seenOf({ stretches, ...row }: VersionRow): SeenVersion {
  return {
    ...row,
    stretches: stretches.map(([startNs, endNs]) => ({ startNs: BigInt(startNs), endNs: BigInt(endNs) })),
  }
}

function eventOf({ time_ns, ...row }: EventRow): DeployEvent {
  return { ...row, atNs: BigInt(time_ns) }
}
