// Rows of a result as Markdown tables, one per table name, in the order of their first rows.

import { z } from 'zod'
import type { ResultRow } from './results.ts'

interface Table {
  readonly caption: string
  readonly rows: readonly ResultRow[]
}

export function tablesOf(rows: readonly ResultRow[]): Table[] {
  const byCaption = new Map<string, ResultRow[]>()
  for (const row of rows.map((each) => attackRow(each) ?? each)) {
    const { table: caption = 'Rows', ...cells } = row
    byCaption.set(caption, [...(byCaption.get(caption) ?? []), cells])
  }
  return [...byCaption].map(([caption, own]) => ({ caption, rows: own }))
}

/** A table with its caption above it. Its columns are those of all rows, in the order of first occurrence. */
export function markdownOf({ caption, rows }: Table): string {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const lines = [
    columns,
    columns.map(() => '---'),
    ...rows.map((row) => columns.map((column) => cellText(row[column]))),
  ]
  return `${caption}:\n\n${lines.map((line) => `| ${line.join(' | ')} |`).join('\n')}`
}

/**
 * Numbers with three significant digits, or with all digits before the point; empty where nothing was
 * measured.
 */
export function cellText(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value !== 'number') return String(value).replaceAll('|', '\\|').replaceAll('\n', ' ')
  if (Number.isInteger(value) || Math.abs(value) >= 100) return Math.round(value).toLocaleString('en')
  return String(Number(value.toPrecision(3)))
}

const latency = z.looseObject({ p99Ms: z.number().nullable() })
const latencies = z.record(z.string(), latency)
const Attack = z.looseObject({
  attack: z.string(),
  calm: latencies,
  attacked: latencies,
  refusals: z.record(z.string(), z.number()),
  peakMb: z.number(),
  recoverySeconds: z.number().nullable(),
  missed: z.array(z.string()),
  trials: z.number().optional(),
  trialsMissed: z.number().optional(),
})

/** Returns the nested record of an attack of bench/neighbours as a row; null for other rows. */
function attackRow(row: ResultRow): ResultRow | null {
  const read = Attack.safeParse(row)
  if (!read.success) return null
  const { attack, attacked, calm, missed, peakMb, recoverySeconds, refusals } = read.data
  const { trials = 1, trialsMissed = Math.min(missed.length, 1) } = read.data
  const activities = Object.keys(attacked).map((activity) => [
    `${activity} p99 ms`,
    `${cellText(calm[activity]?.p99Ms) || '–'} → ${cellText(attacked[activity]?.p99Ms) || '–'}`,
  ])
  return {
    table: 'The honest organisation, without the attack → with it',
    attack,
    ...Object.fromEntries(activities),
    refused: Object.values(refusals).reduce((sum, times) => sum + times, 0),
    'peak MB': peakMb,
    'charts quick again after s': recoverySeconds ?? 'not in 30',
    missed: missed.length === 0 ? 'none' : missed.join(', '),
    'trials that missed': `${trialsMissed} of ${trials}`,
  }
}
