// What `suggest` proposes for the series of a file, from its first part: the same proposal as for the metric
// of an organisation, tried by the same runs.

import { type Ns, nsPerMinute } from '../../contract/values/instant.ts'
import { type DetectorDefinition, readDraft } from './detectors/detector.ts'
import { type FilePoints, replayPoints } from './runs/file-replay.ts'
import { proposeFor, type Trial, trialOf } from './suggest.ts'

const dayNs = 1440n * nsPerMinute
/** As many days as a suggestion looks back. */
const mostNs = 7n * dayNs
const triedNs = 2n * dayNs

interface FileSuggestion {
  readonly definition: DetectorDefinition
  readonly reasons: readonly string[]
  /** End of the first part: when the detector would have been created. */
  readonly createdAtNs: Ns
}

/** Proposes from the first tenth of the file, at least a day and at most a week of it. */
export async function suggestForPoints(
  points: FilePoints,
  params: Readonly<Record<string, unknown>>,
): Promise<FileSuggestion> {
  const { lastNs, startNs } = points
  if (startNs === null || lastNs === null) throw new Error('The file has no values.')
  const tenthNs = (lastNs - startNs) / 10n
  const partNs = tenthNs < dayNs ? dayNs : tenthNs > mostNs ? mostNs : tenthNs
  const endNs = ((startNs + partNs) / nsPerMinute) * nsPerMinute
  const first = points.until(endNs)
  const set = first.read({
    startNs: endNs - mostNs,
    endNs,
    stepMinutes: 1,
    maxGroups: 1,
    isBorn: false,
  })
  const subject = { metric_key: 'value' }
  const fromNs = endNs - triedNs > startNs ? endNs - triedNs : startNs
  const tryOut = (definition: DetectorDefinition) => tryOnPoints(first, definition, fromNs, endNs)
  const { detector, reasons } = await proposeFor(subject, set, tryOut, params)
  const read = readDraft({ ...detector, name: 'file' })
  if ('problems' in read) throw new Error(`A suggestion is invalid: ${JSON.stringify(read.problems)}`)
  return { definition: read.value, reasons, createdAtNs: endNs }
}

async function tryOnPoints(
  points: FilePoints,
  definition: DetectorDefinition,
  fromNs: Ns,
  endNs: Ns,
): Promise<Trial> {
  let judged = 0
  let reachedNs = fromNs
  const { anomalies } = await replayPoints(points, definition, {
    createdAtNs: fromNs,
    endNs,
    onJudged: ({ evaluation, series }) => {
      const stepNs = BigInt(series.stepMinutes) * nsPerMinute
      const fresh = reachedNs > series.startNs ? Number((reachedNs - series.startNs) / stepNs) : 0
      judged += evaluation.scores.score.subarray(fresh).reduce((sum, score) => sum + (score >= 0 ? 1 : 0), 0)
      reachedNs = series.startNs + BigInt(series.values.length) * stepNs
    },
  })
  const days = Number((endNs - fromNs) / nsPerMinute) / 1440
  return trialOf(definition, { judged, alarms: anomalies.length, days, seriesCount: 1 })
}
