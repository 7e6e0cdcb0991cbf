// Converts names and metadata of Prometheus series to OpenTelemetry's terms ("Prometheus and OpenMetrics
// Compatibility" of its specification). Remote write is stateless, so each series is handled alone: by the
// type that its request declares or, where it declares none, by the suffix of its name.

/** The numbers of `MetricType`, the same in both versions of the protocol; 0 is unknown. */
export const metricTypes = {
  unknown: 0,
  counter: 1,
  gauge: 2,
  histogram: 3,
  gaugeHistogram: 4,
  summary: 5,
  info: 6,
  stateSet: 7,
} as const

type SeriesKind = 'gauge' | 'counter' | 'nonMonotonicSum'

/** Suffixes that by convention only counters have. */
const countingSuffix = /_(?:total|count|sum|bucket)$/
const partSuffix = /_(?:count|sum|bucket)$/

/**
 * Returns how a series of float samples is stored. Counters, and the counts, sums and buckets of histograms
 * and summaries, are cumulative monotonic sums; infos and state sets are non-monotonic sums, as the
 * specification says; `_created` series are times; everything else is a gauge. Without a type `_total`,
 * `_count`, `_sum` and `_bucket` mark a counter, so a gauge with such a name is stored as one.
 */
export function kindOfSeries(name: string, type: number): SeriesKind {
  if (name.endsWith('_created')) return 'gauge'
  switch (type) {
    case metricTypes.counter:
      return 'counter'
    case metricTypes.histogram:
    case metricTypes.summary:
      return partSuffix.test(name) ? 'counter' : 'gauge'
    case metricTypes.info:
    case metricTypes.stateSet:
      return 'nonMonotonicSum'
    case metricTypes.unknown:
      return countingSuffix.test(name) ? 'counter' : 'gauge'
    default:
      return 'gauge'
  }
}

/** Returns the names of families that a series may belong to: metadata of version 1.0 is by family. */
export function familyNames(name: string): readonly string[] {
  const family = name.replace(/_(?:total|count|sum|bucket|created|info)$/, '')
  return family === name ? [name] : [name, family]
}

const units: Readonly<Record<string, string>> = {
  days: 'd',
  hours: 'h',
  minutes: 'min',
  seconds: 's',
  milliseconds: 'ms',
  microseconds: 'us',
  nanoseconds: 'ns',
  bytes: 'By',
  kibibytes: 'KiBy',
  mebibytes: 'MiBy',
  gibibytes: 'GiBy',
  kilobytes: 'kBy',
  megabytes: 'MBy',
  gigabytes: 'GBy',
  meters: 'm',
  volts: 'V',
  amperes: 'A',
  joules: 'J',
  watts: 'W',
  grams: 'g',
  celsius: 'Cel',
  hertz: 'Hz',
  ratio: '1',
  percent: '%',
}

/** A unit of time as a divisor, as in `bytes_per_second`. */
const perUnits: Readonly<Record<string, string>> = {
  second: 's',
  minute: 'min',
  hour: 'h',
  day: 'd',
  week: 'wk',
  month: 'mo',
  year: 'y',
}

/** Returns the word of a unit as OpenTelemetry writes it; an unknown word unchanged. */
export function unitOf(word: string): string {
  if (word === '') return ''
  const known = (unit: string) => (Object.hasOwn(units, unit) ? units[unit] : undefined)
  const at = word.lastIndexOf('_per_')
  const [amount, per] = [word.slice(0, Math.max(at, 0)), word.slice(at + '_per_'.length)]
  if (amount === '' || per === '') return known(word) ?? word
  const divisor = Object.hasOwn(perUnits, per) ? perUnits[per] : known(per)
  return `${known(amount) ?? amount}/${divisor ?? per}`
}
