// The table for people: a line for each attack, in Markdown, with the measurements of the honest organisation
// without and with it.

import { controls } from './attacks/controls.ts'
import { type Latency, missedBars } from './bars.ts'
import { type Activity, activities } from './honest.ts'
import type { TrialResult } from './trial.ts'

const heads = [
  'attack',
  'ingest ms',
  'gRPC ms',
  'chart ms',
  'erasure taken ms',
  'erasure done ms',
  'detector run ms',
  'refused',
  'peak MB',
  'recovered s',
  'CPU s service / attacker',
  'the attacker got',
  'bars',
]

export function tableOf(results: readonly TrialResult[], bodiesPerSecond: number): string {
  const lines = [heads, heads.map(() => '---'), ...results.map(cells)].map(
    (line) => `| ${line.join(' | ')} |`,
  )
  const attacks = results.filter(({ attack }) => controls.every(({ name }) => name !== attack))
  const missed = attacks.filter((result) => missedBars(result).length > 0).length
  return [
    'Milliseconds are p50 / p99 of the honest organisation, without the attack → with it.',
    `It sends ${bodiesPerSecond.toFixed(1)} bodies a second.`,
    '',
    ...lines,
    '',
    `${missed} of ${attacks.length} attacks miss a bar.`,
  ].join('\n')
}

function cells(result: TrialResult): string[] {
  const { calm, attacked } = result
  const missed = missedBars(result)
  return [
    result.attack,
    ...activities.map((activity: Activity) => `${pair(calm[activity])} → ${pair(attacked[activity])}`),
    listed(result.refusals),
    String(result.peakMb),
    result.recoverySeconds === null ? 'not in 30' : String(result.recoverySeconds),
    `${result.cpuSeconds.service} / ${result.cpuSeconds.attacker ?? '?'}`,
    listed(result.answers),
    missed.length === 0 ? 'kept' : `**${missed.join(', ')}**`,
  ]
}

function pair({ p50Ms, p99Ms }: Latency): string {
  return p50Ms === null ? '–' : `${p50Ms} / ${p99Ms}`
}

/** The most frequent ones. */
function listed(counts: Readonly<Record<string, number>>): string {
  const sorted = Object.entries(counts).sort(([, a], [, b]) => b - a)
  return sorted
    .slice(0, 4)
    .map(([what, times]) => `${times} × ${what}`)
    .join(', ')
}
