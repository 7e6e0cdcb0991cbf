// Which days of a chart an erasure covers: whole or in part, and only where it has hidden something.

import type { DeletionRequest } from '../../../../contract/deletion.ts'
import { utcDayOf } from '../instants.ts'
import type { ErasedSpan } from './day-chart.ts'

/** Statuses in which the selection is gone, or can't be read. */
const hiding: readonly DeletionRequest['status'][] = [
  'scheduled',
  'held',
  'running',
  'verifying',
  'incomplete',
  'failed',
  'completed',
]

type Erased = Pick<DeletionRequest, 'request_id' | 'status' | 'range_start' | 'range_end' | 'created_at'>

export function erasedSpans(
  requests: readonly Erased[],
  days: readonly string[],
  hrefOf: (requestId: string) => string,
): ErasedSpan[] {
  const [firstDay, lastDay] = [days[0], days.at(-1)]
  if (firstDay === undefined || lastDay === undefined) return []
  return requests
    .filter(({ status }) => hiding.includes(status))
    .flatMap(({ created_at, range_end, range_start, request_id }) => {
      const from = range_start === null ? firstDay : utcDayOf(range_start)
      const to = lastCovered(range_end ?? created_at)
      if (to < firstDay || from > lastDay) return []
      const first = Math.max(0, days.indexOf(from))
      const last = to > lastDay ? days.length - 1 : days.indexOf(to)
      return [{ first, last, label: `erased by ${shortId(request_id)}`, href: hrefOf(request_id) }]
    })
}

/** The last day before an exclusive end. */
function lastCovered(end: string): string {
  return utcDayOf(new Date(Date.parse(end) - 1).toISOString())
}

/** The end of an id, which differs where the beginning is the time. */
export function shortId(id: string): string {
  return `${id.slice(0, 4)}…${id.slice(-6)}`
}
