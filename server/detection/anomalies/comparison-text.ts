// What a value was compared with, as the part of a reason that says what was expected: `, expected about 420
// (340 to 500) from this time of the last 7 days`. It names the past as the method used it, and gives only
// figures that the method measured.

import type { Comparison, MeasuredOfRange } from '../scoring/comparison.ts'
import { formatCount, formatMinutes } from './format.ts'

type Format = (value: number) => string

/** Begins with a comma. `format` writes a value with its unit. */
export function comparisonText(compared: Comparison, stepMinutes: number, format: Format): string {
  const { together } = compared
  const text = textOf(compared, stepMinutes, format)
  return together === undefined ? text : `${text}, together with the ${together} values before it`
}

/** Whether it is about a level of the series: then less than zero can't be expected where all are above. */
export function isOfLevel(compared: Comparison): boolean {
  if (compared.with === 'range') return compared.of.kind === 'value' || compared.of.kind === 'mean'
  return compared.with !== 'distances'
}

/** On which side of what is usual it was; `odd` for what is no level, null where it is within. */
export function sideOfComparison(compared: Comparison): 'high' | 'low' | 'odd' | null {
  const { high, low, measured } = compared
  if (compared.with === 'spreads' || compared.with === 'changes') return 'odd'
  if (compared.with === 'range' && (compared.of.kind === 'step' || compared.of.kind === 'spread'))
    return 'odd'
  if (measured > high) return 'high'
  return measured < low ? 'low' : null
}

function textOf(compared: Comparison, stepMinutes: number, format: Format): string {
  const { count, high, low, measured } = compared
  const range = low === high ? format(low) : `${format(low)} to ${format(high)}`
  const about = 'expected' in compared ? `, expected about ${format(compared.expected)} (${range})` : ''
  switch (compared.with) {
    case 'days':
      return `${about} from this time of the last ${count} days`
    case 'weeks':
      return `${about} from this time and weekday of the last ${counted(count, 'week')}`
    case 'daysAtThisLevel':
      return `${about} from this time of the last ${count} days at the level of the last hour`
    case 'lastValues':
      return `${about} from the last ${formatMinutes(count * stepMinutes)}`
    case 'forecast':
      return `${about} from the last ${formatMinutes(count * stepMinutes)} and this time of earlier days`
    case 'nearest':
      return `, expected near ${format(low)}, the third nearest of the last ${formatCount(count)} values`
    case 'range':
      return `${measuredText(compared.of, measured, stepMinutes, format)}, expected ${range} as in all ${formatCount(count)} values before`
    case 'spreads':
      return `, standard deviation ${format(measured)} over ${formatMinutes(compared.over * stepMinutes)}, expected ${range} from the last ${formatCount(count)} values`
    case 'distances': {
      const where = measured < 0 ? 'below' : 'above'
      const most = Math.max(0, measured < 0 ? -low : high)
      const span = formatMinutes(compared.over * stepMinutes)
      return `, on average of ${span} ${format(Math.abs(measured))} ${where} this time of ${days(count)}, expected at most ${format(most)}`
    }
    case 'changes':
      return `${changingText(compared.means, stepMinutes)} by ${format(measured)} over ${formatMinutes(compared.over * stepMinutes)}, expected ${range} from ${days(count)}`
  }
}

function measuredText(
  { kind, over }: MeasuredOfRange,
  measured: number,
  stepMinutes: number,
  format: Format,
): string {
  const span = formatMinutes(over * stepMinutes)
  if (kind === 'mean') return `, mean of ${span} ${format(measured)}`
  if (kind === 'step') return `, step of ${format(measured)} within ${span}`
  if (kind === 'spread') return `, standard deviation ${format(measured)} over ${span}`
  return ''
}

/** Of single values, or of means over `means` values. */
function changingText(means: number | undefined, stepMinutes: number): string {
  return means === undefined ? ', changes' : `, means of ${formatMinutes(means * stepMinutes)} change`
}

function days(count: number): string {
  return count < 2 ? 'the hours before' : `the last ${count} days`
}

function counted(count: number, noun: string): string {
  return count === 1 ? noun : `${count} ${noun}s`
}
