// Reads the Numenta Anomaly Benchmark from disk (data, labels, profiles, published scores), and converts each
// file to a regular series with gaps as missing buckets, as the product has it. Labels are separate from the
// series, so no scorer can use them.

import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { buildSeries, type Series } from '../../server/detection/scoring/series.ts'

/** One labelled file; `windows` are pairs of rows, both inclusive. */
export interface NabFile {
  /** `<group>/<name>.csv` */
  readonly path: string
  readonly group: string
  readonly length: number
  readonly windows: readonly (readonly [number, number])[]
  /** The first rows are never scored. */
  readonly probation: number
  readonly series: Series
  /**
   * Bucket of each row; of several rows in one bucket only the last one stands for it, the others have -1.
   */
  readonly bucketOfRow: Int32Array
}

export interface NabProfile {
  readonly name: 'standard' | 'reward_low_FP_rate' | 'reward_low_FN_rate'
  readonly tpWeight: number
  readonly fpWeight: number
  readonly fnWeight: number
}

const profileNames = ['standard', 'reward_low_FP_rate', 'reward_low_FN_rate'] as const

export function nabFolder(given: string | undefined): string {
  return given ?? process.env.LETHE_NAB_DIR ?? join(import.meta.dirname, '../../../shared/data/nab')
}

/** False when the data is not on this machine. */
export function hasNab(folder: string): boolean {
  return existsSync(join(folder, 'labels/combined_windows.json'))
}

export function readProfiles(folder: string): NabProfile[] {
  const profiles: Record<string, { CostMatrix: Record<string, number> }> = readJson(
    join(folder, 'config/profiles.json'),
  )
  return profileNames.map((name) => {
    const costs = profiles[name]?.CostMatrix ?? {}
    const weight = (key: string) => costs[key] ?? Number.NaN
    return { name, tpWeight: weight('tpWeight'), fpWeight: weight('fpWeight'), fnWeight: weight('fnWeight') }
  })
}

export function readCorpus(folder: string): NabFile[] {
  const labels: Record<string, [string, string][]> = readJson(join(folder, 'labels/combined_windows.json'))
  const paths = globSync('*/*', { cwd: join(folder, 'data') }).sort()
  return paths.map((path) => readFile(folder, path, labels[path] ?? []))
}

/** Published scores of one detector, row by row, keyed by file. */
export function readPublishedScores(folder: string, detector: string): Map<string, Float64Array> {
  const text = gunzipSync(readFileSync(join(folder, 'results', `${detector}.scores.gz`))).toString('utf8')
  return new Map(
    text
      .split('# ')
      .slice(1)
      .map((part) => {
        const [path = '', ...rows] = part.trimEnd().split('\n')
        return [path.trim(), Float64Array.from(rows, Number)] as const
      }),
  )
}

/** A score per bucket laid back onto the rows; rows without one get 0, which never fires. */
export function scoresOfRows(file: NabFile, bucketScores: Float64Array): Float64Array {
  return Float64Array.from(file.bucketOfRow, (bucket) => bucketScores[bucket] || 0)
}

function readFile(folder: string, path: string, labels: [string, string][]): NabFile {
  const rows = readFileSync(join(folder, 'data', path), 'utf8')
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => line.trimEnd().split(','))
  const stamps = rows.map(([stamp = '']) => minuteOf(stamp))
  const rowAt = (label: string) => stamps.indexOf(minuteOf(label))
  const windows = labels.map(([from, to]) => [rowAt(from), rowAt(to)] as const)
  if (windows.some(([from, to]) => from < 0 || to < from)) throw new Error(`${path}: a label names no row`)
  const { series, bucketOfRow } = regularSeries(
    stamps,
    rows.map(([, value]) => Number(value)),
  )
  const probation = Math.min(Math.floor(0.15 * rows.length), 750)
  return { path, group: dirname(path), length: rows.length, windows, probation, series, bucketOfRow }
}

/** The usual distance of the timestamps is the step; a reading goes to the nearest bucket. */
function regularSeries(minutes: readonly number[], values: readonly number[]) {
  const start = minutes[0] ?? 0
  const steps = minutes.slice(1).map((minute, i) => minute - (minutes[i] ?? minute))
  const stepMinutes = Math.max(1, Math.round(steps.sort((a, b) => a - b)[steps.length >> 1] ?? 1))
  const buckets = minutes.map((minute) => Math.max(0, Math.round((minute - start) / stepMinutes)))
  const startNs = BigInt(Math.round(start)) * 60_000_000_000n
  const length = Math.max(0, ...buckets) + 1
  const stepNs = BigInt(stepMinutes) * 60_000_000_000n
  const points = buckets.map((bucket, row) => ({
    timeNs: startNs + BigInt(bucket) * stepNs,
    value: values[row] ?? Number.NaN,
  }))
  const lastRow = new Map(buckets.map((bucket, row) => [bucket, row]))
  const bucketOfRow = Int32Array.from(buckets, (bucket, row) => (lastRow.get(bucket) === row ? bucket : -1))
  return { series: buildSeries({ startNs, stepMinutes, length }, points), bucketOfRow }
}

/** Naive local time read as UTC: `2014-04-10 00:04:00`, with or without a fraction. */
function minuteOf(stamp: string): number {
  return Date.parse(`${stamp.trim().replace(' ', 'T').slice(0, 19)}Z`) / 60_000
}

function readJson<T>(path: string): T {
  return JSON.parse(readFileSync(path, 'utf8'))
}
