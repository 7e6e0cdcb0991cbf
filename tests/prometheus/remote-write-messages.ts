// A second, independent encoder of Prometheus remote write for tests: the published messages of both
// versions, encoded by protobufjs, and Snappy by another library; neither shares code with the decoders.

import protobuf from 'protobufjs'
// @ts-expect-error the library has no types
import snappy from 'snappyjs'

const shared = `
message Sample { double value = 1; int64 timestamp = 2; int64 startTimestamp = 3; }
message BucketSpan { sint32 offset = 1; uint32 length = 2; }
message Histogram {
  oneof count { uint64 countInt = 1; double countFloat = 2; }
  double sum = 3; sint32 schema = 4; double zeroThreshold = 5;
  oneof zero_count { uint64 zeroCountInt = 6; double zeroCountFloat = 7; }
  repeated BucketSpan negativeSpans = 8; repeated sint64 negativeDeltas = 9; repeated double negativeCounts = 10;
  repeated BucketSpan positiveSpans = 11; repeated sint64 positiveDeltas = 12; repeated double positiveCounts = 13;
  uint32 resetHint = 14; int64 timestamp = 15; repeated double customValues = 16; int64 startTimestamp = 17; }
`

const messages = {
  '1.0': `syntax = "proto3"; ${shared}
message Request { repeated TimeSeries timeseries = 1; repeated MetricMetadata metadata = 3; }
message TimeSeries { repeated Label labels = 1; repeated Sample samples = 2; repeated Exemplar exemplars = 3;
  repeated Histogram histograms = 4; }
message Label { string name = 1; string value = 2; }
message Exemplar { repeated Label labels = 1; double value = 2; int64 timestamp = 3; }
message MetricMetadata { uint32 type = 1; string metricFamilyName = 2; string help = 4; string unit = 5; }`,
  '2.0': `syntax = "proto3"; ${shared}
message Request { repeated string symbols = 4; repeated TimeSeries timeseries = 5; }
message TimeSeries { repeated uint32 labelsRefs = 1; repeated Sample samples = 2; repeated Histogram histograms = 3;
  repeated Exemplar exemplars = 4; Metadata metadata = 5; int64 createdTimestamp = 6; }
message Exemplar { repeated uint32 labelsRefs = 1; double value = 2; int64 timestamp = 3; }
message Metadata { uint32 type = 1; uint32 helpRef = 3; uint32 unitRef = 4; }`,
}

export type Version = keyof typeof messages
export const versions = ['1.0', '2.0'] as const

const requests = {
  '1.0': protobuf.parse(messages['1.0'], { keepCase: true }).root.lookupType('Request'),
  '2.0': protobuf.parse(messages['2.0'], { keepCase: true }).root.lookupType('Request'),
}

interface TestSample {
  readonly value: number
  readonly timestamp: number | string
}

export interface TestSeries {
  /** Includes `__name__`; an array of pairs where a name must occur twice. */
  readonly labels: Readonly<Record<string, string>> | readonly (readonly [string, string])[]
  readonly samples?: readonly TestSample[]
  readonly exemplars?: readonly {
    readonly labels: Readonly<Record<string, string>>
    readonly value: number
    readonly timestamp: number
  }[]
  /** In the form of the message. */
  readonly histograms?: readonly Readonly<Record<string, unknown>>[]
  readonly type?: number
  readonly help?: string
  readonly unit?: string
  /** Only 2.0 has it. */
  readonly createdMs?: number
}

/** Replaced by the marker that a series ended, whose bits a JavaScript number doesn't keep. */
export const staleMarker = 1.234567890123e300
const markerBytes = Buffer.from('020000000000f07f', 'hex')

/** The request in the form of the version, uncompressed. */
export function encodeRequest(version: Version, series: readonly TestSeries[]): Buffer {
  const bytes = encodeRaw(version, version === '1.0' ? formV1(series) : formV2(series))
  const written = Buffer.alloc(8)
  written.writeDoubleLE(staleMarker)
  for (let at = bytes.indexOf(written); at >= 0; at = bytes.indexOf(written)) markerBytes.copy(bytes, at)
  return bytes
}

/** Any message of these fields, for requests that a correct sender never makes. */
export function encodeRaw(version: Version, message: Readonly<Record<string, unknown>>): Buffer {
  return Buffer.from(requests[version].encode(requests[version].fromObject(message)).finish())
}

export function compress(bytes: Uint8Array): Buffer {
  return snappy.compress(Buffer.from(bytes))
}

export const contentTypes = {
  '1.0': 'application/x-protobuf',
  '2.0': 'application/x-protobuf;proto=io.prometheus.write.v2.Request',
} as const

function pairsOf(labels: TestSeries['labels']): [string, string][] {
  return [...(Symbol.iterator in labels ? labels : Object.entries(labels))].map(([name, value]) => [
    name,
    value,
  ])
}

function formV1(series: readonly TestSeries[]) {
  const labelsOf = (labels: TestSeries['labels']) => pairsOf(labels).map(([name, value]) => ({ name, value }))
  return {
    timeseries: series.map(({ labels, samples = [], exemplars = [], histograms = [] }) => ({
      labels: labelsOf(labels),
      samples: [...samples],
      exemplars: exemplars.map((exemplar) => ({ ...exemplar, labels: labelsOf(exemplar.labels) })),
      histograms: [...histograms],
    })),
    metadata: series
      .filter(({ type }) => type !== undefined)
      .map(({ labels, type, help = '', unit = '' }) => ({
        type,
        metricFamilyName: Object.fromEntries(pairsOf(labels)).__name__,
        help,
        unit,
      })),
  }
}

function formV2(series: readonly TestSeries[]) {
  const symbols = ['']
  const ref = (text: string) => {
    if (!symbols.includes(text)) symbols.push(text)
    return symbols.indexOf(text)
  }
  const refsOf = (labels: TestSeries['labels']) => pairsOf(labels).flat().map(ref)
  const timeseries = series.map(({ labels, samples = [], exemplars = [], histograms = [], ...more }) => ({
    labelsRefs: refsOf(labels),
    samples: [...samples],
    exemplars: exemplars.map(({ labels: own, ...exemplar }) => ({ ...exemplar, labelsRefs: refsOf(own) })),
    histograms: [...histograms],
    metadata: { type: more.type ?? 0, helpRef: ref(more.help ?? ''), unitRef: ref(more.unit ?? '') },
    createdTimestamp: more.createdMs ?? 0,
  }))
  return { symbols, timeseries }
}
