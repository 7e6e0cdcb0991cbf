// A series set as the wire has it: a point per step, null where there is no data, and marked where the time was
// erased. An answer stays below a size that one request may cost everybody else, by showing fewer groups of a
// longer series.

import type { z } from 'zod'
import { formatInstant, nsPerSecond } from '../../contract/instant.ts'
import type { SeriesAnswer, SeriesQuery } from '../../contract/telemetry.ts'
import { InvalidInput, problem } from '../core/app-error.ts'
import { countSteps, maxSteps, readSeries, type SeriesGroup, type SeriesSet } from '../telemetry/series.ts'
import type { StatementLimits } from '../telemetry/telemetry.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { timeWindow } from './time-window.ts'

/** The 50 busiest groups are shown at most, and as many points in all as fit about three megabytes of JSON. */
const maxGroups = 50
const maxPoints = 50_000

type Answer = z.infer<typeof SeriesAnswer>

/** Throws InvalidInput for an empty range, too many steps, or an aggregation that this metric doesn't have. */
export async function answerSeries(
  reader: TenantReader,
  query: z.output<typeof SeriesQuery>,
  nowNs: bigint,
  limits?: StatementLimits,
): Promise<Answer> {
  const request = {
    metricKey: query.metric_key,
    service: query.service,
    attributes: query.attribute,
    groupBy: query.group_by,
    aggregation: query.aggregation,
    ...timeWindow(query, nowNs),
    stepSeconds: query.step_seconds,
  }
  const steps = countSteps(request)
  if (steps > maxSteps) throw tooManySteps(request)
  const groups = Math.max(1, Math.min(maxGroups, Math.floor(maxPoints / steps)))
  const set = await readSeries(reader, { ...request, maxGroups: groups }, limits)
  if (query.aggregation !== undefined && query.aggregation !== set.aggregation) {
    throw unsuited(query.aggregation, set)
  }
  return answerOf(set, nowNs)
}

function answerOf(set: SeriesSet, nowNs: bigint): Answer {
  const step = BigInt(set.stepSeconds) * nsPerSecond
  const startsNs = Array.from({ length: set.steps }, (_, i) => set.startNs + BigInt(i) * step)
  const times = startsNs.map(formatInstant)
  // Nothing has been counted yet in time that hasn't come, which isn't the same as zero.
  const come = startsNs.filter((startNs) => startNs <= nowNs).length
  const start = formatInstant(set.startNs)
  const end = formatInstant(set.startNs + BigInt(set.steps) * step)
  return {
    metric_key: set.metricKey,
    unit: set.unit,
    aggregation: set.aggregation,
    step_seconds: set.stepSeconds,
    range_start: start,
    range_end: end,
    series: set.groups.map((group) => ({ group: group.group, points: pointsOf(group, set, times, come) })),
    truncated: set.truncatedGroups > 0,
    metric: set.metricKey,
    start,
    end,
  }
}

function pointsOf(group: SeriesGroup, set: SeriesSet, times: readonly string[], come: number) {
  return times.map((time, i) => {
    const value = i < come ? (group.values[i] ?? Number.NaN) : Number.NaN
    const point = { time, value: Number.isFinite(value) ? value : null }
    return set.unknown[i] === 1 ? { ...point, erased: true } : point
  })
}

function tooManySteps(request: { startNs: bigint; endNs: bigint; stepSeconds: number }): InvalidInput {
  const seconds = Number((request.endNs - request.startNs) / nsPerSecond)
  // One step fewer than the bound, because aligning the range may add one.
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
