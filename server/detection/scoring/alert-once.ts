// Finds the scores that were not reported before. People want one report per anomaly, but every bucket scores
// high while it lasts, and until the series is back at its usual values. So a score counts as unreported only
// where it exceeds the highest recently reported score by a clear step. The reported score fades with a
// half-life. Scores must be logarithmic (surprises): then a step of a fifth is a large one, and a high score
// fades within a few half-lives.
//
// What happens every week at the same time is reported once as well (`ReportedWeekly`): a weekly job, or a
// disk that is cleared. The daily rhythm needs nothing of the kind, as seven days soon show what is usual.

import { BucketRing } from './bucket-ring.ts'

/** A fifth above the highest score that was reported. */
const clearStep = 1.2

const minutesPerWeek = 10_080
/** With one week alone, a week that had an incident of its own at this time would hide the repetition. */
const weeksKept = 2
/** Weekly jobs are not exact to the minute: scores are kept in slots, and the neighbours count too. */
const slotMinutes = 15

/** The reported score of a sequence of scores, which are given one by one. */
export class Reported {
  private readonly fade: number
  private highest = 0

  /** The half-life is a number of scores. */
  constructor(halfLifePoints: number) {
    this.fade = 0.5 ** (1 / halfLifePoints)
  }

  /**
   * Returns the next score (not NaN) where it was not reported before, else 0. A score up to `edge` is not
   * reported, so a slow rise is reported when it reaches the edge.
   */
  unreportedOf(score: number, edge = 0): number {
    this.highest *= this.fade
    const unreported = score > this.highest * clearStep ? score : 0
    if (score > edge) this.highest = Math.max(this.highest, score)
    return unreported
  }
}

/** The scores that were reported, or would have been, by the time of the week. */
export class ReportedWeekly {
  private readonly slotMinutes: number
  private readonly slotsPerWeek: number
  private readonly highest: BucketRing

  constructor(stepMinutes: number) {
    this.slotMinutes = Math.max(slotMinutes, stepMinutes)
    this.slotsPerWeek = Math.round(minutesPerWeek / this.slotMinutes)
    this.highest = new BucketRing(weeksKept * this.slotsPerWeek + 2)
  }

  /**
   * Whether a score is no clear step above one at this local minute of the last weeks, a quarter of an hour
   * more or less. Keeps the score for the next weeks.
   */
  wasReported(minute: number, score: number): boolean {
    const slot = this.slotOf(minute)
    let before = 0
    for (let week = 1; week <= weeksKept; week++) {
      for (let shift = -1; shift <= 1; shift++) {
        before = Math.max(before, this.highest.get(slot - week * this.slotsPerWeek + shift) || 0)
      }
    }
    this.highest.set(slot, Math.max(score, this.highest.get(slot) || 0))
    return score <= before * clearStep
  }

  /** Forgets the scores from a local minute to another, so that the same is reported again. */
  forget(from: number, to: number): void {
    for (let slot = this.slotOf(from); slot <= this.slotOf(to); slot++) this.highest.set(slot, 0)
  }

  private slotOf(minute: number): number {
    return Math.floor(minute / this.slotMinutes)
  }
}

/**
 * Returns each unreported score as it is, 0 for the others, and NaN where there is no score. The
 * half-life is a number of scores.
 */
export function unreportedScores(scores: Float64Array, halfLifePoints: number): Float64Array {
  const reported = new Reported(halfLifePoints)
  return scores.map((score) => (Number.isNaN(score) ? score : reported.unreportedOf(score)))
}
