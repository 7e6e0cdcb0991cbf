// Reads a series as it was at many instants of the past, for replaying runs over a range. A run at an instant
// reads its window and nothing after the instant. A statement for each of a thousand overlapping windows
// would read every row a thousand times. So where each step of a series is read from its own rows only, the
// range is read once, in pieces, and windows are cut out of it. A cut returns what `readSeries` would have
// returned, because both use `setOf`. Where steps depend on points around them (rates of counters,
// distributions), later points would matter, and each window is read by a reader that ends at its instant.

import type { Ns } from '../../contract/values/instant.ts'
import { partitionPoint } from '../core/partition-point.ts'
import type { StatementLimits } from '../telemetry/engine.ts'
import type { From, TenantReader } from '../telemetry/tenant-reader.ts'
import { mayBeFamily } from './classic-histogram.ts'
import { eventCountStatement, eventSeriesOf, eventStatement } from './event-series.ts'
import { aggregationOf, isStepwise, type MetricFacts, metricChoice } from './metric-kind.ts'
import { metricStatement } from './metric-series.ts'
import { countStatement, factsStatement, type MetricRequest } from './point-conditions.ts'
import {
  eventChoice,
  frameOf,
  hasEventsBefore,
  maxSteps,
  nothingOf,
  readSeries,
  type SeriesReading,
  type SeriesRequest,
  type SeriesSet,
  setOf,
} from './series.ts'
import {
  groupsOf,
  hasLongName,
  type PackedGroup,
  type SeriesFrame,
  type SeriesRow,
  stepNs,
} from './series-statement.ts'

export interface SeriesReplay {
  /** Rows of telemetry in the range, each counted once. */
  readonly rows: number
  /**
   * Whether groups of the range were left out of the whole replay, besides those that each window leaves out.
   */
  readonly isCut: boolean
  /** Returns the series as a read at `knownUntilNs` would have found it. The window is inside the range. */
  window(window: ReplayWindow): Promise<SeriesSet>
}

interface ReplayWindow {
  readonly startNs: Ns
  readonly endNs: Ns
  /** Not before the end. */
  readonly knownUntilNs: Ns
  /** The number that the request names where absent. */
  readonly maxGroups?: number
}

/**
 * Groups of a whole range that are kept in memory; each window selects its busiest from them. Fewer for a
 * long range: all together have as many steps as 200 groups over three weeks of minutes.
 */
const groupsMax = 200
const groupsMin = 50
/** Steps of one read of many groups: its result is unpacked in one go. */
const groupedSteps = 2016
const groupStepsMax = 6_000_000

/**
 * Prepares the replay of a request whose range covers all windows; the range may have any number of steps.
 */
export async function replaySeries(
  reader: TenantReader,
  request: SeriesRequest,
  limits?: StatementLimits,
): Promise<SeriesReplay> {
  const builtIn = eventSeriesOf(request.metricKey)
  const whole = wholeFrame(request)
  if (builtIn !== undefined) {
    const choice = eventChoice(builtIn, request.aggregation)
    const [counted] = await reader.rows<{ n: number }>((from) => eventCountStatement(from, whole, builtIn))
    const stretches = await readStretches(whole, async (frame) => {
      const statement = (from: Parameters<typeof eventStatement>[0]) =>
        eventStatement(from, frame, builtIn, choice.aggregation)
      return groupsOf(frame, await reader.rows<SeriesRow>(statement, limits), builtIn.counting)
    })
    const first = { ...frameOf({ ...request, endNs: request.startNs + stepNs(whole) }) }
    const livedBefore = await hasEventsBefore(reader, first, builtIn, [], limits)
    const reading = { metricKey: request.metricKey, ...choice, livedBefore }
    return cutReplay(reader, request, { ...stretches, whole, reading, rows: counted?.n ?? 0 })
  }
  return replayMetric(reader, request, whole, limits)
}

async function replayMetric(
  reader: TenantReader,
  request: SeriesRequest,
  whole: SeriesFrame,
  limits: StatementLimits | undefined,
): Promise<SeriesReplay> {
  const metric = request.metricKey
  const found = await reader.rows<MetricFacts>((from) => factsStatement(from, whole, metric), limits)
  const choice = metricChoice(found, request.aggregation)
  const isFamily = mayBeFamily(metric, choice)
  const rows = await countPoints(
    reader,
    whole,
    isFamily || choice === null ? familyRequest(request) : { metric, ...choice },
  )
  if (isFamily || choice === null || !isStepwise(choice.kind, choice.aggregation)) {
    const window = ({ knownUntilNs, maxGroups, ...range }: ReplayWindow) =>
      readSeries(
        reader.until(knownUntilNs),
        { ...request, ...range, maxGroups: maxGroups ?? request.maxGroups },
        limits,
      )
    return { rows, isCut: false, window }
  }
  const stretches = await readStretches(whole, async (frame) => {
    const statement = (from: From) => metricStatement(from, frame, { metric, ...choice })
    return groupsOf(frame, await reader.rows<SeriesRow>(statement, limits), false)
  })
  const { aggregation, unit } = choice
  const reading = { ...nothingOf(request), aggregation, unit, livedBefore: false }
  return cutReplay(reader, request, { ...stretches, whole, reading, rows })
}

function familyRequest({ metricKey: metric, aggregation: asked }: SeriesRequest): MetricRequest {
  const kind = 'classic_histogram'
  return { metric, kind, aggregation: aggregationOf({ kind, flows: 1 }, asked) }
}

async function countPoints(reader: TenantReader, whole: SeriesFrame, what: MetricRequest): Promise<number> {
  const [counted] = await reader.rows<{ n: number }>((from) => countStatement(from, whole, what))
  return counted?.n ?? 0
}

/** A frame of the whole range with any number of steps; the range is divided to be read. */
function wholeFrame(request: SeriesRequest): SeriesFrame {
  const first = frameOf({ ...request, endNs: request.startNs + BigInt(request.stepSeconds) * 1_000_000_000n })
  const step = stepNs(first)
  const endNs = ((request.endNs + step - 1n) / step) * step
  const fitting = Math.floor((groupStepsMax * Number(step)) / Number(endNs - first.startNs))
  return { ...first, endNs, maxGroups: Math.max(groupsMin, Math.min(groupsMax, fitting)) }
}

/** The steps of one group over the whole range, in order. */
interface GroupSteps {
  readonly grp: PackedGroup['grp']
  readonly counting: number
  readonly steps: number[]
  readonly readings: (number | null)[]
  readonly amounts: (number | null)[]
}

interface Stretches {
  readonly groups: readonly GroupSteps[]
  readonly isCut: boolean
}

async function readStretches(
  whole: SeriesFrame,
  read: (frame: SeriesFrame) => Promise<PackedGroup[]>,
): Promise<Stretches> {
  const groups = new Map<string, GroupSteps>()
  let isCut = false
  const span = stepNs(whole) * BigInt(whole.groupBy === undefined ? maxSteps : groupedSteps)
  for (let startNs = whole.startNs; startNs < whole.endNs; startNs += span) {
    const endNs = startNs + span < whole.endNs ? startNs + span : whole.endNs
    const offset = Number((startNs - whole.startNs) / stepNs(whole))
    const rows = await read({ ...whole, startNs, endNs })
    if (Number(rows[0]?.groups ?? 0) > rows.length) isCut = true
    for (const row of rows) {
      const group = groups.get(String(row.grp)) ?? {
        grp: row.grp,
        counting: row.counting,
        steps: [],
        readings: [],
        amounts: [],
      }
      groups.set(String(row.grp), group)
      const order = row.steps.map((_, i) => i).sort((a, b) => (row.steps[a] ?? 0) - (row.steps[b] ?? 0))
      for (const i of order) {
        group.steps.push((row.steps[i] ?? 0) + offset)
        group.readings.push(row.readings[i] ?? null)
        group.amounts.push(row.amounts[i] ?? null)
      }
    }
  }
  return { groups: [...groups.values()], isCut }
}

function cutReplay(
  reader: TenantReader,
  request: SeriesRequest,
  read: Stretches & {
    readonly whole: SeriesFrame
    readonly rows: number
    readonly reading: Omit<SeriesReading, 'rows'>
  },
): SeriesReplay {
  const { groups, isCut, reading, rows, whole } = read
  const isGrouped = request.groupBy !== undefined
  const window = async ({ startNs, endNs, maxGroups }: ReplayWindow): Promise<SeriesSet> => {
    const frame = frameOf({ ...request, startNs, endNs })
    const first = Number((frame.startNs - whole.startNs) / stepNs(whole))
    const count = Number((frame.endNs - frame.startNs) / stepNs(whole))
    const inside = groups.map((group) => cut(group, first, first + count))
    const present = isGrouped ? inside.filter(({ steps }) => steps.length > 0) : inside
    const busiest = present.toSorted(
      (a, b) =>
        Number(hasLongName(whole, a)) - Number(hasLongName(whole, b)) ||
        volumeOf(b) - volumeOf(a) ||
        (String(a.grp) < String(b.grp) ? -1 : 1),
    )
    const kept = busiest
      .slice(0, maxGroups ?? request.maxGroups)
      .map((group) => ({ ...group, groups: present.length + (isCut ? 1 : 0) }))
    const isAlive =
      !isGrouped && (reading.livedBefore === true || groups.some(({ steps }) => (steps[0] ?? first) < first))
    return setOf(reader, frame, { ...reading, rows: kept, livedBefore: isAlive && hasZeros(reading) })
  }
  return { rows, isCut, window }
}

/** Only series that count are zero in steps without events. */
function hasZeros({ metricKey }: Omit<SeriesReading, 'rows'>): boolean {
  return eventSeriesOf(metricKey)?.counting === true
}

function cut(group: GroupSteps, first: number, end: number): PackedGroup {
  const [from, to] = [lowerBound(group.steps, first), lowerBound(group.steps, end)]
  return {
    grp: group.grp,
    counting: group.counting,
    groups: 1,
    steps: group.steps.slice(from, to).map((step) => step - first),
    readings: group.readings.slice(from, to),
    amounts: group.amounts.slice(from, to),
  }
}

function volumeOf({ amounts }: PackedGroup): number {
  return amounts.reduce<number>((sum, amount) => sum + (amount ?? 0), 0)
}

/** Returns the index of the first step that is not before `step`. */
function lowerBound(steps: readonly number[], step: number): number {
  return partitionPoint(steps.length, (i) => (steps[i] ?? 0) >= step)
}
