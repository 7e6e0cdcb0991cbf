// NAB v1.1 scores, implemented from the published rules: a detection inside a window earns more the earlier
// it is; one outside a window costs, and so does a window without one; all files have one threshold. The
// threshold is either the oracle's (the best for the same labels, as it is usually published) or the best for
// the other groups. 0 is "never fires", 100 is perfect.
//
// A sweep adds rows to the detections in descending order of score and keeps the total up to date, so every
// distinct score of the corpus is tried as threshold in one pass.

import type { NabFile, NabProfile } from './nab-corpus.ts'

/**
 * Scores of a file's rows in [0, infinity); a row fires where its score reaches the
 * threshold, and 0 never does.
 */
export type RowScores = ReadonlyMap<string, Float64Array>

interface BestScore {
  readonly final: number
  readonly threshold: number
}

/** The value of one row as a detection: in a window a share of the reward, outside a share of the cost. */
interface RatedRow {
  readonly score: number
  readonly worth: number
  readonly group: string
  /** Ordinal of the window in the corpus; -1 outside. */
  readonly window: number
}

/** Every row that could fire, highest score first, whatever the profile. */
interface RatedCorpus {
  readonly rows: readonly RatedRow[]
  readonly windowsOfGroup: ReadonlyMap<string, number>
}

/** The best threshold on the given files, scored on the same files. */
export function oracleScore(rated: RatedCorpus, profile: NabProfile): BestScore {
  const { threshold, raw } = bestThreshold(rated.rows, windowsOf(rated), profile)
  return { threshold, final: normalised(raw, windowsOf(rated), profile) }
}

/** Each group scored at the threshold that was best on all other groups. */
export function heldOutScore(rated: RatedCorpus, profile: NabProfile): number {
  let raw = 0
  for (const [group, windows] of rated.windowsOfGroup) {
    const others = rated.rows.filter((row) => row.group !== group)
    const { threshold } = bestThreshold(others, windowsOf(rated) - windows, profile)
    const judged = rated.rows.filter((row) => row.group === group)
    raw += rawAt(judged, windows, threshold, profile)
  }
  return normalised(raw, windowsOf(rated), profile)
}

/** Scored at a given threshold. */
export function fixedScore(rated: RatedCorpus, profile: NabProfile, threshold: number): number {
  return normalised(rawAt(rated.rows, windowsOf(rated), threshold, profile), windowsOf(rated), profile)
}

const windowsOf = (rated: RatedCorpus) => rated.windowsOfGroup.values().reduce((sum, each) => sum + each, 0)

export function rateRows(files: readonly NabFile[], scores: RowScores): RatedCorpus {
  const rows: RatedRow[] = []
  const windowsOfGroup = new Map<string, number>()
  let windowCount = 0
  for (const file of files) {
    const fileScores = scores.get(file.path)
    if (fileScores?.length !== file.length) throw new Error(`${file.path}: scores do not match its rows`)
    let next = 0
    for (let row = 0; row < file.length; row++) {
      while (next < file.windows.length && row > (file.windows[next]?.[1] ?? 0)) next++
      const score = fileScores[row] ?? 0
      if (row < file.probation || !(score > 0)) continue
      const window = file.windows[next]
      const isInside = window !== undefined && row >= window[0]
      const worth = isInside ? rewardAt(row, window) : costAt(row, file.windows[next - 1])
      rows.push({ score, worth, group: file.group, window: isInside ? windowCount + next : -1 })
    }
    windowCount += file.windows.length
    windowsOfGroup.set(file.group, (windowsOfGroup.get(file.group) ?? 0) + file.windows.length)
  }
  return { rows: rows.sort((a, b) => b.score - a.score), windowsOfGroup }
}

const scaledSigmoid = (y: number) => (y > 3 ? -1 : 2 / (1 + Math.exp(5 * y)) - 1)

function rewardAt(row: number, [first, last]: readonly [number, number]): number {
  return scaledSigmoid(-(last - row + 1) / (last - first + 1)) / scaledSigmoid(-1)
}

function costAt(row: number, before: readonly [number, number] | undefined): number {
  return before ? scaledSigmoid((row - before[1]) / (before[1] - before[0])) : -1
}

/** The total as rows join; a window counts its best detection, and its miss until it has one. */
class Total {
  raw: number
  readonly #best = new Map<number, number>()
  readonly #profile: NabProfile

  constructor(windowCount: number, profile: NabProfile) {
    this.raw = -windowCount * profile.fnWeight
    this.#profile = profile
  }

  add(row: RatedRow): void {
    if (row.window < 0) {
      this.raw += row.worth * this.#profile.fpWeight
      return
    }
    const before = this.#best.get(row.window)
    if (before === undefined) this.raw += this.#profile.fnWeight
    if (before !== undefined && before >= row.worth) return
    this.raw += (row.worth - (before ?? 0)) * this.#profile.tpWeight
    this.#best.set(row.window, row.worth)
  }
}

function bestThreshold(rows: readonly RatedRow[], windowCount: number, profile: NabProfile) {
  const total = new Total(windowCount, profile)
  let best = { threshold: Number.POSITIVE_INFINITY, raw: total.raw }
  for (const [i, row] of rows.entries()) {
    total.add(row)
    if (rows[i + 1]?.score === row.score) continue
    if (total.raw > best.raw) best = { threshold: row.score, raw: total.raw }
  }
  return best
}

function rawAt(
  rows: readonly RatedRow[],
  windowCount: number,
  threshold: number,
  profile: NabProfile,
): number {
  const total = new Total(windowCount, profile)
  for (const row of rows) if (row.score >= threshold) total.add(row)
  return total.raw
}

function normalised(raw: number, windowCount: number, profile: NabProfile): number {
  const nothing = -windowCount * profile.fnWeight
  return (100 * (raw - nothing)) / (windowCount * profile.tpWeight - nothing)
}
