// Which days of a chart are hidden or erased, whole or in part, and by which request.

import type { ErasedTime } from '../../../../contract/organisation/usage.ts'
import { daysApart, utcDayOf } from '../instants.ts'
import { shortId } from '../short-ids.ts'
import type { ErasedSpan } from './day-chart.ts'

export function erasedSpans(erased: readonly ErasedTime[], days: readonly string[]): ErasedSpan[] {
  const [firstDay, lastDay] = [days[0], days.at(-1)]
  if (firstDay === undefined || lastDay === undefined) return []
  return erased.flatMap(({ range_end, range_start, request_id, state }) => {
    const from = range_start === null ? firstDay : utcDayOf(range_start)
    const to = range_end === null ? lastDay : lastCovered(range_end)
    if (to < firstDay || from > lastDay || to < from) return []
    const first = from < firstDay ? 0 : daysApart(firstDay, from)
    const last = to > lastDay ? days.length - 1 : daysApart(firstDay, to)
    return [{ first, last, label: `${state} by ${shortId(request_id)}`, requestId: request_id }]
  })
}

/** The last day before an exclusive end. */
function lastCovered(end: string): string {
  return utcDayOf(new Date(Date.parse(end) - 1).toISOString())
}
