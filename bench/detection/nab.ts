// Every method on the Numenta Anomaly Benchmark, through the code that production runs: `scoreSeries` for
// ranking and `evaluateSeries` for alarms. Prints a table and one JSON object, beside the published
// leaders and a trivial control.
//
//   node bench/detection/nab.ts [folder of the data] [--methods a,b] [--ablate | --losses]
//   LETHE_NAB_DIR=... node bench/detection/nab.ts
//
// --methods measures only these; a method that compares peers has none here. --ablate asks instead what each
// member of `auto` is worth, and the candidates that are none: every choice of members beside the trivial
// control, chosen on some groups and judged on the others, both ways, and last the choice itself held out
// group by group. --losses tells where `auto` and the leader lose their points, group by group.
//
// Four questions, because one figure hides the others:
//   oracle     NAB as everybody publishes it: one threshold, chosen on the very labels.
//   held out   each group at the threshold that is best on the other groups.
//   shipped    no threshold at all: alarms of the default parameters, one false alarm per series and week.
//   VUS-PR     no threshold, ranking only; on NAB's windows, so not comparable with TSB-AD's own labels.
// A method that tells no news apart gets the shared alert-once rule for NAB (a monotone change of its score).

import { execFileSync } from 'node:child_process'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { comparesPeers, type MethodKey, methodKeys, methodParams } from '../../contract/detection-methods.ts'
import { autoMembers, combineMembers, memberNames } from '../../server/detection/methods/auto.ts'
import { type MethodChoice, scoreSeries } from '../../server/detection/methods/catalogue.ts'
import type { Scores } from '../../server/detection/methods/method.ts'
import { evaluateSeries } from '../../server/detection/runs/evaluate.ts'
import { unreportedScores } from '../../server/detection/scoring/alert-once.ts'
import { candidateSurprises, variantsOf } from './candidates.ts'
import {
  hasNab,
  type NabFile,
  nabFolder,
  readCorpus,
  readProfiles,
  readPublishedFinals,
  readPublishedScores,
  scoresOfRows,
} from './nab-corpus.ts'
import {
  fixedScore,
  heldOutChoice,
  heldOutScore,
  lossesByGroup,
  oracleScore,
  type RatedCorpus,
  type RowScores,
  rateRows,
  splitScore,
} from './nab-score.ts'
import { vusPr } from './vus.ts'

const { positionals, values: options } = parseArgs({
  allowPositionals: true,
  options: {
    methods: { type: 'string' },
    ablate: { type: 'boolean', default: false },
    losses: { type: 'boolean', default: false },
  },
})
if (positionals.length > 1) throw new Error('Name methods with --methods, and ablation with --ablate')
const folder = nabFolder(positionals[0])
if (!hasNab(folder)) {
  console.log(
    JSON.stringify({
      bench: 'detection/nab',
      skipped: `no NAB data at ${folder}; give its folder as argument`,
    }),
  )
  process.exit(0)
}

const files = readCorpus(folder)
const profiles = readProfiles(folder)
const wanted = options.methods?.split(',')
const halfLifePoints = methodParams.auto.parse({}).memory_points

/** Limits are the user's own, and without a volume a rate has no test: neither has a default to measure. */
const measured = methodKeys.filter(
  (key) =>
    key !== 'threshold' &&
    !comparesPeers(key) &&
    !options.ablate &&
    !options.losses &&
    (wanted?.includes(key) ?? true),
)

function choiceOf(key: MethodKey): MethodChoice {
  // The schema of this very key made the parameters, which the type of a lookup by key can't express.
  return { method_key: key, params: methodParams[key].parse({}) } as MethodChoice
}

const round = (value: number, digits = 1) => Number(value.toFixed(digits))
const threeProfiles = (final: (profile: (typeof profiles)[number]) => number) =>
  profiles.map((profile) => round(final(profile), 3))

function nabFigures(rows: RowScores) {
  const rated = rateRows(files, rows)
  return {
    oracle: threeProfiles((profile) => oracleScore(rated, profile).final),
    held_out: threeProfiles((profile) => heldOutScore(rated, profile).final),
  }
}

function newsIn(scores: Scores): Float64Array {
  return scores.unreported ?? unreportedScores(scores.score.map(Math.log1p), halfLifePoints)
}

function meanVus(scoresOf: ReadonlyMap<string, Float64Array>): number {
  const each = files
    .map((file) =>
      vusPr(
        (scoresOf.get(file.path) ?? new Float64Array()).slice(file.probation),
        windowsAfterProbation(file),
      ),
    )
    .filter((value) => !Number.isNaN(value))
  return each.reduce((sum, value) => sum + value, 0) / each.length
}

function windowsAfterProbation(file: NabFile): [number, number][] {
  return file.windows
    .filter(([, to]) => to >= file.probation)
    .map(([from, to]) => [Math.max(0, from - file.probation), to - file.probation])
}

/** Alarms as production raises them, against the labelled windows. */
function alarmFigures(choice: MethodChoice) {
  const fired = new Map<string, Float64Array>()
  const delays: number[] = []
  let alarms = 0
  let right = 0
  let hit = 0
  let weeks = 0
  for (const file of files) {
    const { incidents } = evaluateSeries(file.series, choice)
    const openings = new Float64Array(file.series.values.length)
    for (const incident of incidents) openings[incident.openedIndex] = 1
    const rows = scoresOfRows(file, openings)
    fired.set(file.path, rows)
    weeks += ((file.length - file.probation) * file.series.stepMinutes) / 10_080
    const isInside = (row: number) => file.windows.some(([from, to]) => row >= from && row <= to)
    for (let row = file.probation; row < file.length; row++) {
      if (rows[row] !== 1) continue
      alarms++
      if (isInside(row)) right++
    }
    for (const [from, to] of file.windows) {
      const first = rows.indexOf(1, Math.max(from, file.probation))
      if (first < 0 || first > to) continue
      hit++
      delays.push((first - from) / (to - from))
    }
  }
  const rated = rateRows(files, fired)
  const windows = files.reduce((sum, file) => sum + file.windows.length, 0)
  return {
    shipped: threeProfiles((profile) => fixedScore(rated, profile, 1).final),
    event_precision: round(right / Math.max(1, alarms), 3),
    event_recall: round(hit / windows, 3),
    alarms_per_series_week: round(alarms / weeks, 2),
    median_delay_of_window: round(delays.sort((a, b) => a - b)[delays.length >> 1] ?? Number.NaN, 2),
  }
}

function figuresOf(name: string, scoreOf: (file: NabFile) => Scores) {
  const news = new Map<string, Float64Array>()
  const plain = new Map<string, Float64Array>()
  const startUs = process.cpuUsage().user
  const scores = files.map((file) => [file, scoreOf(file)] as const)
  const cpuSeconds = (process.cpuUsage().user - startUs) / 1e6
  for (const [file, each] of scores) {
    news.set(file.path, scoresOfRows(file, newsIn(each)))
    plain.set(file.path, scoresOfRows(file, each.score))
  }
  const buckets = files.reduce((sum, file) => sum + file.series.values.length, 0)
  return {
    method: name,
    ...nabFigures(news),
    vus_pr: round(meanVus(plain), 3),
    buckets_per_cpu_s: Math.round(buckets / cpuSeconds),
  }
}

function control(tolerance: number): RowScores {
  return new Map(
    files.map((file) => {
      let lowest = Number.POSITIVE_INFINITY
      let highest = Number.NEGATIVE_INFINITY
      const records = file.series.values.map((value, i) => {
        if (Number.isNaN(value)) return 0
        const margin = tolerance * (highest - lowest) || 0
        const isRecord = i > 0 && (value > highest + margin || value < lowest - margin)
        lowest = Math.min(lowest, value)
        highest = Math.max(highest, value)
        return isRecord ? 1 : 0
      })
      return [file.path, scoresOfRows(file, records)]
    }),
  )
}

const inWords = (figures: readonly number[] | undefined) =>
  figures?.map((each) => each.toFixed(1)).join(' ') ?? ''
const published = readPublishedFinals(folder)
/** A line of the table; only methods of ours have alarms. */
type Line = { method: string } & ReturnType<typeof nabFigures> &
  Partial<ReturnType<typeof figuresOf> & ReturnType<typeof alarmFigures>>

const references = ['ARTime', 'numenta', 'windowedGaussian'].map((name) => {
  const rows = readPublishedScores(folder, name)
  const finals = profiles.map((profile) => round(published[name]?.[profile.name] ?? Number.NaN, 3))
  return { method: name, published: finals, ...nabFigures(rows), vus_pr: round(meanVus(rows), 3) }
})
const controls = [0, 0.01].map((tolerance) => ({
  method: `control: new all-time high or low, tolerance ${tolerance}`,
  ...nabFigures(control(tolerance)),
}))
const silent = {
  method: 'never fires',
  ...nabFigures(new Map(files.map((f) => [f.path, new Float64Array(f.length)]))),
}
const results = measured.map((key) => {
  const choice = choiceOf(key)
  return {
    ...figuresOf(key, (file) => scoreSeries(choice.method_key, file.series, choice.params)),
    ...alarmFigures(choice),
  }
})

/** Groups the members were first chosen on; the other three are the judges, and then the other way round. */
const workedOn = ['realAWSCloudwatch', 'artificialNoAnomaly', 'artificialWithAnomaly', 'realTweets']

function ablate() {
  const params = methodParams.auto.parse({})
  const members = files.map((file) => {
    const own = autoMembers(file.series, params)
    return { ...own, file, surprises: { ...own.surprises, ...candidateSurprises(own.dense) } }
  })
  const rated = new Map<string, RatedCorpus>()
  const [standard] = profiles
  if (standard === undefined) throw new Error('NAB has no profiles')
  const lines = [...variantsOf(memberNames)].map(([name, names]) => {
    const rows = new Map(
      members.map(({ file, surprises, ...rest }) => {
        const chosen = names.map((each) => surprises[each])
        return [file.path, scoresOfRows(file, newsIn(combineMembers(chosen, rest, params)))]
      }),
    )
    const corpus = rateRows(files, rows)
    rated.set(name, corpus)
    const split = (isJudged: (group: string) => boolean) => {
      const { chosen, judged } = splitScore(corpus, isJudged, standard)
      return { chosen: round(chosen), judged: round(judged) }
    }
    return {
      method: name,
      ...nabFigures(rows),
      worked_on_chooses: split((group) => !workedOn.includes(group)),
      others_choose: split((group) => workedOn.includes(group)),
    }
  })
  const choices = profiles.map((profile) => ({ profile: profile.name, ...heldOutChoice(rated, profile) }))
  return { lines, choices }
}

const ablation = options.ablate ? ablate() : null
if (ablation !== null) {
  const figures = ({ held_out, oracle }: ReturnType<typeof nabFigures>) => ({
    oracle: inWords(oracle),
    'held out': inWords(held_out),
  })
  console.table([
    ...controls.map((line) => ({ method: line.method, ...figures(line) })),
    ...ablation.lines.map(({ method, others_choose, worked_on_chooses, ...line }) => ({
      method,
      ...figures(line),
      'worked on choose': worked_on_chooses.chosen,
      'others judge': worked_on_chooses.judged,
      'others choose': others_choose.chosen,
      'worked on judge': others_choose.judged,
    })),
  ])
  console.table(
    ablation.choices.map(({ choices, final, profile }) => ({ profile, final: round(final), ...choices })),
  )
}

/** By group, what of 100 points is lost at the best threshold, and why. */
function losses() {
  const [standard] = profiles
  if (standard === undefined) throw new Error('NAB has no profiles')
  const params = methodParams.auto.parse({})
  const own = files.map((file) => {
    return [file.path, scoresOfRows(file, newsIn(scoreSeries('auto', file.series, params)))] as const
  })
  const sides: [string, RowScores][] = [
    ['auto', new Map(own)],
    ['ARTime', readPublishedScores(folder, 'ARTime')],
  ]
  return sides.flatMap(([method, rows]) => {
    const rated = rateRows(files, rows)
    const { threshold } = oracleScore(rated, standard)
    return [...lossesByGroup(rated, standard, threshold)].map(([group, loss]) => ({
      method,
      threshold: round(threshold, 3),
      group,
      windows: loss.windows,
      missed: loss.missed,
      false_alarms: loss.falseAlarms,
      points_missed: round(loss.missedPoints),
      points_late: round(loss.latePoints),
      points_false: round(loss.falsePoints),
    }))
  })
}

const lost = options.losses ? losses() : null
if (lost !== null) console.table(lost)

const lines: Line[] = options.ablate || options.losses ? [] : [...references, ...controls, silent, ...results]
if (lines.length > 0)
  console.table(
    lines.map((line) => ({
      method: line.method,
      oracle: inWords(line.oracle),
      'held out': inWords(line.held_out),
      shipped: inWords(line.shipped),
      'vus-pr': line.vus_pr ?? '',
      precision: line.event_precision ?? '',
      recall: line.event_recall ?? '',
      'alarms/week': line.alarms_per_series_week ?? '',
      delay: line.median_delay_of_window ?? '',
      'buckets/s': line.buckets_per_cpu_s ?? '',
    })),
  )
const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
const machine = { node: process.version, cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length }
const profileNames = profiles.map((profile) => profile.name)
console.log(
  JSON.stringify(
    {
      bench: 'detection/nab',
      commit,
      machine,
      profiles: profileNames,
      references,
      controls,
      silent,
      results,
      ablation,
      lost,
    },
    null,
    2,
  ),
)
