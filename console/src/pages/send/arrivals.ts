// Counts the rows that arrive while a page is open, from the count of the present UTC day. That count begins
// again at zero every day, so a page that stays open over midnight adds up both days.

interface DayCount {
  readonly day: string
  readonly rows_accepted: number
}

export interface Arrivals {
  /** Rows since the first reading. */
  readonly arrived: number
  /** The last reading. */
  readonly today: DayCount
}

/** @param before the arrivals at the reading before; null at the first one */
export function arrivalsAfter(before: Arrivals | null, today: DayCount): Arrivals {
  if (before === null) return { arrived: 0, today }
  const known = before.today.day === today.day ? before.today.rows_accepted : 0
  return { arrived: before.arrived + Math.max(0, today.rows_accepted - known), today }
}
