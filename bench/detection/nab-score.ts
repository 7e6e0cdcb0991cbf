// NAB v1.1 scores from the published rules, written from their description: a detection inside a window
// earns more the earlier it comes, one outside costs, a window without one costs; one threshold for all
// files. The threshold is either the oracle's (the best on the very labels, as everybody publishes it) or
// the best of the other groups.
//
// A sweep adds rows to the detections in descending order of score and keeps the total up to date, so every
// distinct score of the corpus is tried as threshold in one pass.

import type { NabFile, NabProfile } from './nab-corpus.ts'

/**
 * Scores of a file's rows in [0, infinity); a row fires where its score reaches the
 * threshold, and 0 never does.
 */
export type RowScores = ReadonlyMap<string, Float64Array>

interface NabScore {
  /** 0 is "never fires", 100 is perfect. */
  readonly final: number
  readonly threshold: number
}

/** What one row is worth as a detection: in a window a share of the reward, outside a share of the cost. */
interface RatedRow {
  readonly score: number
  readonly worth: number
  readonly group: string
  /** Ordinal of the window in the corpus; -1 outside. */
  readonly window: number
}

/** Every row that could fire, highest score first, whatever the profile. */
export interface RatedCorpus {
  readonly rows: readonly RatedRow[]
  readonly windowsOfGroup: ReadonlyMap<string, number>
}

/** The best threshold on the given files, scored on the same files. */
export function oracleScore(rated: RatedCorpus, profile: NabProfile): NabScore {
  const { threshold, raw } = bestThreshold(rated.rows, windowsOf(rated), profile)
  return { threshold, final: normalised(raw, windowsOf(rated), profile) }
}

/** Each group scored at the threshold that was best on all other groups; `threshold` is their mean. */
export function heldOutScore(rated: RatedCorpus, profile: NabProfile): NabScore {
  let raw = 0
  let thresholds = 0
  for (const group of rated.windowsOfGroup.keys()) {
    const split = splitScore(rated, (each) => each === group, profile)
    raw += split.judgedRaw
    thresholds += split.threshold / rated.windowsOfGroup.size
  }
  return { threshold: thresholds, final: normalised(raw, windowsOf(rated), profile) }
}

interface SplitScore {
  /** The best on the groups that choose, and its score there. */
  readonly threshold: number
  readonly chosen: number
  /**
   * The groups that are judged, at that threshold: as a final score (NaN without a
   * window), and before it is one.
   */
  readonly judged: number
  readonly judgedRaw: number
}

/** Some groups judged at the threshold that was best on the others. */
export function splitScore(
  rated: RatedCorpus,
  isJudged: (group: string) => boolean,
  profile: NabProfile,
): SplitScore {
  const windows = (judged: boolean) =>
    [...rated.windowsOfGroup].reduce((sum, [group, each]) => sum + (isJudged(group) === judged ? each : 0), 0)
  const choosers = rated.rows.filter((row) => !isJudged(row.group))
  const { threshold, raw } = bestThreshold(choosers, windows(false), profile)
  const judgedRows = rated.rows.filter((row) => isJudged(row.group))
  const judgedRaw = rawAt(judgedRows, windows(true), threshold, profile)
  const judged = normalised(judgedRaw, windows(true), profile)
  return { threshold, chosen: normalised(raw, windows(false), profile), judged, judgedRaw }
}

interface HeldOutChoice {
  readonly final: number
  /** By group, the variant that was best on all other groups. */
  readonly choices: Readonly<Record<string, string>>
}

/** Each group scored by the variant, at the threshold, that together were best on all other groups. */
export function heldOutChoice(
  variants: ReadonlyMap<string, RatedCorpus>,
  profile: NabProfile,
): HeldOutChoice {
  const [any] = variants.values()
  if (any === undefined) throw new Error('A choice needs variants')
  let raw = 0
  const choices: Record<string, string> = {}
  for (const group of any.windowsOfGroup.keys()) {
    const splits = [...variants].map(([name, rated]) => ({
      name,
      ...splitScore(rated, (each) => each === group, profile),
    }))
    const best = splits.reduce((a, b) => (b.chosen > a.chosen ? b : a))
    raw += best.judgedRaw
    choices[group] = best.name
  }
  return { final: normalised(raw, windowsOf(any), profile), choices }
}

/** Scored at a threshold decided elsewhere. */
export function fixedScore(rated: RatedCorpus, profile: NabProfile, threshold: number): NabScore {
  const raw = rawAt(rated.rows, windowsOf(rated), threshold, profile)
  return { threshold, final: normalised(raw, windowsOf(rated), profile) }
}

/** Where the points up to 100 went, in points of the whole corpus. */
interface Loss {
  windows: number
  /** Windows without a detection. */
  missed: number
  /** Detections outside of windows. */
  falseAlarms: number
  missedPoints: number
  /** For coming later than the first row of the window. */
  latePoints: number
  falsePoints: number
}

/** By group; all points together are what is missing to 100. */
export function lossesByGroup(
  rated: RatedCorpus,
  profile: NabProfile,
  threshold: number,
): ReadonlyMap<string, Loss> {
  const best = new Map<number, RatedRow>()
  const point = 100 / (windowsOf(rated) * (profile.tpWeight + profile.fnWeight))
  const losses = new Map<string, Loss>()
  for (const [group, windows] of rated.windowsOfGroup) {
    const missedPoints = windows * point * (profile.tpWeight + profile.fnWeight)
    losses.set(group, {
      windows,
      missed: windows,
      falseAlarms: 0,
      missedPoints,
      latePoints: 0,
      falsePoints: 0,
    })
  }
  for (const row of rated.rows) {
    const loss = losses.get(row.group)
    if (row.score < threshold || loss === undefined) continue
    if (row.window < 0) {
      loss.falseAlarms++
      loss.falsePoints -= row.worth * profile.fpWeight * point
    } else if (row.worth > (best.get(row.window)?.worth ?? Number.NEGATIVE_INFINITY))
      best.set(row.window, row)
  }
  for (const { group, worth } of best.values()) {
    const loss = losses.get(group)
    if (loss === undefined) continue
    loss.missed--
    loss.missedPoints -= point * (profile.tpWeight + profile.fnWeight)
    loss.latePoints += (1 - worth) * profile.tpWeight * point
  }
  return losses
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
