// Reads many series sets by few statements, for detectors that are due at once. Parsing and planning a
// statement costs the engine more than reading the window of one detector (docs/decisions/0005). So requests
// that differ only in metric and service are members of one statement, and equal requests are read once. Each
// set equals the result of `readSeries` for its request.

import type { StatementLimits } from '../telemetry/engine.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { bucketNameOf, mayBeFamily } from './classic-histogram.ts'
import { type EventSeries, eventSeriesOf, eventStatement } from './event-series.ts'
import { isStepwise, type MetricFacts, metricChoice } from './metric-kind.ts'
import { metricStatement } from './metric-series.ts'
import { factsStatement } from './point-conditions.ts'
import {
  eventChoice,
  frameOf,
  hasEventsBefore,
  nothingOf,
  readSeries,
  type SeriesRequest,
  type SeriesSet,
  setOf,
} from './series.ts'
import type { PackedGroup, SeriesFrame, SeriesMember } from './series-statement.ts'

/** The most members of one statement: their results together stay below some megabytes. */
const membersMax = 100

/** Requests whose statements are combined. */
interface Together {
  readonly reader: TenantReader
  readonly requests: readonly SeriesRequest[]
  readonly limits: StatementLimits | undefined
}

/**
 * Returns one set for each request, in their order; equal requests share one. Throws the error of the first
 * failing statement. Then nothing is known about any of the requests; to find the failing one, read them one
 * by one.
 */
export async function readSeriesBatch(
  reader: TenantReader,
  requests: readonly SeriesRequest[],
  limits?: StatementLimits,
): Promise<SeriesSet[]> {
  const distinct = new Map(requests.map((request) => [textOf(request), request]))
  const sets = new Map<string, SeriesSet>()
  const alike = Map.groupBy(distinct.values(), statementKey)
  for (const group of alike.values()) {
    for (let i = 0; i < group.length; i += membersMax) {
      const members = group.slice(i, i + membersMax)
      const read = await readAlike({ reader, requests: members, limits })
      for (const [n, request] of members.entries()) {
        const set = read[n]
        if (set !== undefined) sets.set(textOf(request), set)
      }
    }
  }
  return requests.flatMap((request) => sets.get(textOf(request)) ?? [])
}

/** Requests with the same text are equal. */
function textOf(request: SeriesRequest): string {
  const { metricKey, service, aggregation, isBorn } = request
  return JSON.stringify([axisOf(request), metricKey, service ?? null, aggregation ?? null, isBorn === true])
}

/**
 * Everything in which members of one statement must agree. A request with groups already returns many series
 * and has a statement of its own.
 */
function statementKey(request: SeriesRequest): string {
  const isBuiltIn = eventSeriesOf(request.metricKey) !== undefined
  const hasService = request.service !== undefined
  if (request.groupBy !== undefined || (isBuiltIn && !hasService)) return textOf(request)
  const series = isBuiltIn ? [request.metricKey, request.aggregation ?? null] : []
  return JSON.stringify([axisOf(request), hasService, ...series])
}

function axisOf(request: SeriesRequest): unknown[] {
  const { startNs, endNs, attributes, groupBy, groupBytesMax, maxGroups } = frameOf(request)
  const groups = [groupBy ?? null, maxGroups, groupBytesMax ?? null]
  return [String(startNs), String(endNs), request.stepSeconds, attributes, ...groups]
}

async function readAlike(together: Together): Promise<SeriesSet[]> {
  const { reader, requests, limits } = together
  const [first] = requests
  if (first === undefined) return []
  if (requests.length === 1) return [await readSeries(reader, first, limits)]
  const builtIn = eventSeriesOf(first.metricKey)
  return builtIn === undefined ? readMetrics(together) : readEvents(together, builtIn, first)
}

async function readEvents(
  { reader, requests, limits }: Together,
  series: EventSeries,
  first: SeriesRequest,
): Promise<SeriesSet[]> {
  const members = requests.map(({ service }) => ({ metric: undefined, service }))
  const { aggregation, unit } = eventChoice(series, first.aggregation)
  const found = byMember(
    await reader.rows<PackedGroup>(
      (from) => eventStatement(from, { ...frameOf(first), members }, series, aggregation),
      limits,
    ),
  )
  const sets: SeriesSet[] = []
  for (const [i, request] of requests.entries()) {
    const frame = frameOf(request)
    const rows = found.get(keyOf(members[i])) ?? [emptyGroup(series)]
    const isBorn = request.isBorn === true
    const livedBefore = isBorn || (await hasEventsBefore(reader, frame, series, rows, limits))
    sets.push(setOf(reader, frame, { metricKey: request.metricKey, unit, aggregation, rows, livedBefore }))
  }
  return sets
}

/** The result of a series without events. */
function emptyGroup({ counting }: EventSeries): PackedGroup {
  return { grp: '', steps: [], readings: [], amounts: [], groups: 1, counting: counting ? 1 : 0 }
}

async function readMetrics({ reader, requests, limits }: Together): Promise<SeriesSet[]> {
  const members = requests.map(memberOf)
  const facts = byMember(
    await reader.rows<MetricFacts>((from) => factsStatement(from, axisFor(requests, members), ''), limits),
  )
  const chosen = requests.map((request, i) => ({
    request,
    choice: metricChoice(facts.get(keyOf(members[i])) ?? [], request.aggregation),
  }))
  const sets = new Map<SeriesRequest, SeriesSet>()
  const apart = chosen.filter(({ request, choice }) => mayBeFamily(request.metricKey, choice))
  for (const request of await familiesAmong(
    reader,
    apart.map(({ request }) => request),
    limits,
  )) {
    sets.set(request, await readSeries(reader, request, limits))
  }
  const rest = chosen.filter(({ request }) => !sets.has(request))
  const waysToRead = Map.groupBy(rest, ({ choice }) => `${choice?.kind} ${choice?.aggregation}`)
  for (const group of waysToRead.values()) {
    const [{ choice } = { choice: null }] = group
    const own = group.map(({ request }) => request)
    const frame = axisFor(own, own.map(memberOf))
    const rows =
      choice === null
        ? []
        : await reader.rows<PackedGroup>(
            (from) => metricStatement(from, frame, { metric: '', ...choice }),
            limits,
          )
    const found = byMember(rows)
    for (const { request, choice } of group) {
      const rows = found.get(keyOf(memberOf(request))) ?? []
      // Points that are only around the series are no reading of a series whose steps are read from their own
      // points.
      const isNothing = choice === null || (rows.length === 0 && isStepwise(choice.kind, choice.aggregation))
      const reading = isNothing ? nothingOf(request) : { metricKey: request.metricKey, ...choice, rows }
      sets.set(request, setOf(reader, frameOf(request), reading))
    }
  }
  return requests.flatMap((request) => sets.get(request) ?? [])
}

/**
 * Returns the requests whose metric is a classic histogram: each is several counters and is read separately.
 */
async function familiesAmong(
  reader: TenantReader,
  requests: readonly SeriesRequest[],
  limits: StatementLimits | undefined,
): Promise<SeriesRequest[]> {
  if (requests.length === 0) return []
  const members = requests.map(bucketsOf)
  const frame = axisFor(requests, members)
  const facts = byMember(
    await reader.rows<MetricFacts>((from) => factsStatement(from, frame, '', ['sum']), limits),
  )
  return requests.filter((request) => facts.has(keyOf(bucketsOf(request))))
}

/** The time axis that the requests share. */
function axisFor([first]: readonly SeriesRequest[], members: readonly SeriesMember[]): SeriesFrame {
  if (first === undefined) throw new RangeError('There is no request to read')
  return { ...frameOf(first), members }
}

const bucketsOf = ({ metricKey, service }: SeriesRequest): SeriesMember => ({
  metric: bucketNameOf(metricKey),
  service,
})
const memberOf = ({ metricKey, service }: SeriesRequest): SeriesMember => ({ metric: metricKey, service })

const keyOf = (member: SeriesMember | undefined): string =>
  JSON.stringify([member?.metric ?? '', member?.service ?? ''])

function byMember<Row extends { readonly grp: PackedGroup['grp'] }>(
  rows: readonly Row[],
): Map<string, Row[]> {
  return Map.groupBy(rows, ({ grp }) => JSON.stringify(grp))
}
