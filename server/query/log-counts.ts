// Counts log records by severity and time, with the filters of the list. Hidden rows are not counted, and
// steps that overlap hidden or erased time are marked. The cost is that of reading the filtered columns of
// the range once, within the limits of a read.

import type { z } from 'zod'
import {
  type LogCountQuery,
  type LogCounts,
  logCountStepsMax,
  severities,
} from '../../contract/telemetry/queries.ts'
import { formatInstant, nsPerSecond } from '../../contract/values/instant.ts'
import { InvalidInput, problem } from '../core/app-error.ts'
import { markTouched } from '../core/time-range.ts'
import type { StatementLimits } from '../telemetry/engine.ts'
import { raw, sql } from '../telemetry/sql.ts'
import { rangeCondition, type TenantReader } from '../telemetry/tenant-reader.ts'
import { conditionsOf, costlyOf, leastSeverity } from './logs.ts'
import { type TimeWindow, timeWindow } from './time-window.ts'

type Answer = z.output<typeof LogCounts>
type Counts = Answer['totals']

/** Widths that people read easily, seconds. */
const widths = [1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400, 604_800]

/** Steps of a chart where the query names no width. */
const usualSteps = 100

interface CountRow {
  /** Steps since 1970. */
  readonly step: string
  readonly severity: keyof Counts
  readonly total: string
}

/** Throws InvalidInput for an empty range and for too many steps. */
export async function countLogs(
  reader: TenantReader,
  query: z.output<typeof LogCountQuery>,
  nowNs: bigint,
  limits?: StatementLimits,
): Promise<Answer> {
  const window = timeWindow(query, nowNs)
  const stepSeconds = query.step_seconds ?? widthFor(window)
  const stepNs = BigInt(stepSeconds) * nsPerSecond
  const [first, last] = [window.startNs / stepNs, (window.endNs - 1n) / stepNs]
  if (last - first >= BigInt(logCountStepsMax)) throw tooManySteps(window, stepSeconds)
  const rows = await reader.rows<CountRow>((from) => {
    const step = raw(`intDiv(toUnixTimestamp64Nano(Timestamp), ${stepNs})`)
    const costly = costlyOf(query).map(({ condition }) => condition)
    return from.select('otel_logs', {
      columns: sql`toString(${step}) AS step, ${severityOfRow} AS severity, toString(count()) AS total`,
      conditions: [rangeCondition('Timestamp', window), ...conditionsOf(query), ...costly],
      groupBy: raw('step, severity'),
    })
  }, limits)
  const isErased = new Uint8Array(Number(last - first) + 1)
  const originNs = first * stepNs
  const all = { originNs, startNs: originNs, endNs: (last + 1n) * stepNs, stepNs }
  markTouched(isErased, reader.gate.unknownTime(reader.place.tenantId, 'logs', window), all)
  const perStep = Map.groupBy(rows, ({ step }) => step)
  const steps = Array.from(isErased, (erased, i) => {
    const index = first + BigInt(i)
    const startNs = index * stepNs
    const time = formatInstant(startNs < window.startNs ? window.startNs : startNs)
    const counts = countsOf(perStep.get(index.toString()) ?? [])
    return erased === 1 ? { time, counts, erased: true } : { time, counts }
  })
  return {
    range_start: formatInstant(window.startNs),
    range_end: formatInstant(window.endNs),
    step_seconds: stepSeconds,
    totals: countsOf(rows),
    steps,
  }
}

/** The bands of OpenTelemetry's SeverityNumber, worst first. */
const severityOfRow = raw(
  `multiIf(${severities
    .toReversed()
    .map((severity) => `SeverityNumber >= ${leastSeverity[severity]}, '${severity}'`)
    .join(', ')}, 'unspecified')`,
)

function countsOf(rows: readonly CountRow[]): Counts {
  const counts: Counts = { unspecified: 0, trace: 0, debug: 0, info: 0, warn: 0, error: 0, fatal: 0 }
  for (const { severity, total } of rows) counts[severity] += Number(total)
  return counts
}

function widthFor({ endNs, startNs }: TimeWindow): number {
  const seconds = Number((endNs - startNs) / nsPerSecond)
  const least = Math.max(1, Math.ceil(seconds / usualSteps))
  return widths.find((width) => width >= least) ?? least
}

function tooManySteps({ endNs, startNs }: TimeWindow, stepSeconds: number): InvalidInput {
  const seconds = Number((endNs - startNs) / nsPerSecond)
  // One step fewer than the limit, because steps begin at multiples of their width.
  const least = Math.ceil(seconds / (logCountStepsMax - 1))
  return new InvalidInput([
    problem(
      ['query', 'step_seconds'],
      'greater_than_equal',
      `This range would take more than ${logCountStepsMax} steps; use a step of ${least} seconds or more, or a shorter range`,
      String(stepSeconds),
      { ge: least },
    ),
  ])
}
