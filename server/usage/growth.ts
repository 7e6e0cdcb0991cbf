// What was added in the last whole weeks of UTC days. The current day is left out, because an unfinished day
// would look like a decrease every morning.

const msPerDay = 86_400_000
const nsPerDay = 86_400_000_000_000n

/** The starts of three days as numbers since 1970: today, a week before it, and two weeks before it. */
export interface GrowthDays {
  readonly today: number
  readonly recent: number
  readonly previous: number
}

export function growthDays(nowMs: number): GrowthDays {
  const today = Math.floor(nowMs / msPerDay)
  return { today, recent: today - 7, previous: today - 14 }
}

/** The number of a UTC day, such as `2026-11-21`. */
function dayNumber(day: string): number {
  return Date.parse(`${day}T00:00:00Z`) / msPerDay
}

export function dayStartNs(day: number): bigint {
  return BigInt(day) * nsPerDay
}

export function dayText(day: number): string {
  return new Date(day * msPerDay).toISOString().slice(0, 10)
}

interface Amount {
  readonly rows: number
  readonly bytes: number
}

/** Returns new objects, which have nothing but rows and bytes. */
export function sumOfAmounts(amounts: readonly Amount[]): Amount {
  return amounts.reduce((sum, { bytes, rows }) => ({ rows: sum.rows + rows, bytes: sum.bytes + bytes }), {
    rows: 0,
    bytes: 0,
  })
}

/** Sums amounts of days for the wire. */
export function growthOf(
  amounts: readonly (Amount & { readonly day: string })[],
  { previous, recent, today }: GrowthDays,
): { last_7_days: Amount; previous_7_days: Amount } {
  const between = (from: number, until: number) =>
    sumOfAmounts(amounts.filter(({ day }) => dayNumber(day) >= from && dayNumber(day) < until))
  return { last_7_days: between(recent, today), previous_7_days: between(previous, recent) }
}
