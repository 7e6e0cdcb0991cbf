// Reads `prometheus.WriteRequest` (remote write 1.0) and `io.prometheus.write.v2.Request` (2.0), one series
// at a time in a common form. Unknown fields are skipped; a known field with another wire type is refused,
// because skipping it would lose data. Invalid UTF-8 becomes U+FFFD, as in OTLP. Readers write a field as
// `(number << 3) | wire type`, with 0 = varint, 1 = 64 bits, 2 = length-delimited.

import { BinaryReader } from '@bufbuild/protobuf/wire'
import { AppError } from '../../core/app-error.ts'
import { familyNames, metricTypes } from './names.ts'

export type RemoteWriteVersion = '1.0' | '2.0'

interface SeriesMetadata {
  /** One of {@link metricTypes}. */
  readonly type: number
  readonly help: string
  readonly unit: string
}

export interface Sample {
  readonly value: number
  /** Whether the value is the marker of the end of the series. */
  readonly isStale: boolean
  readonly timeMs: number
  /** 0 where unknown. */
  readonly startMs: number
}

export interface PromExemplar {
  /** Names and values, alternating. */
  readonly labels: readonly string[]
  readonly value: number
  readonly timeMs: number
}

/** Consecutive buckets; `offset` is the gap after the previous span; of the first span, its start. */
interface BucketSpan {
  readonly offset: number
  readonly length: number
}

/** One side of a native histogram: differences of integer counts, or counts that may be fractional. */
export interface HistogramSide {
  readonly spans: BucketSpan[]
  readonly deltas: bigint[]
  readonly counts: number[]
}

export class NativeHistogram {
  count: bigint | number = 0n
  zeroCount: bigint | number = 0n
  sum = 0
  isStale = false
  schema = 0
  isGauge = false
  timeMs = 0
  startMs = 0
  readonly positive: HistogramSide = { spans: [], deltas: [], counts: [] }
  readonly negative: HistogramSide = { spans: [], deltas: [], counts: [] }
  readonly customBounds: number[] = []
}

export interface TimeSeries {
  /** Names and values, alternating, as they were sent. */
  readonly labels: readonly string[]
  readonly metadata: SeriesMetadata
  readonly samples: readonly Sample[]
  readonly histograms: readonly NativeHistogram[]
  readonly exemplars: readonly PromExemplar[]
}

const noMetadata: SeriesMetadata = { type: metricTypes.unknown, help: '', unit: '' }

/** `HistogramResetHint` of a gauge. */
const gaugeHint = 3

/** Reads a request and passes each series on, in order. Throws `bad_request` for any other body. */
export function readRemoteWrite(
  version: RemoteWriteVersion,
  body: Buffer,
  onSeries: (series: TimeSeries) => void,
): void {
  const reader = new RequestReader(body)
  try {
    if (version === '1.0') reader.readV1(onSeries)
    else reader.readV2(onSeries)
  } catch (error) {
    throw reader.translate(error)
  }
}

class RequestReader {
  readonly #wire: BinaryReader
  readonly #body: Buffer
  /** The string table of a 2.0 request. */
  readonly #symbols: string[] = []
  readonly #families = new Map<string, SeriesMetadata>()

  constructor(body: Buffer) {
    this.#body = body
    this.#wire = new BinaryReader(body)
  }

  /**
   * The wire library throws RangeError for a read beyond the end of the body, and a plain Error for what no
   * encoder writes. Any other error is a defect of ours and must not be reported as the client's.
   */
  translate(error: unknown): unknown {
    if (error instanceof RangeError) return this.#error('truncated')
    const isPlain = error instanceof Error && error.constructor === Error
    return isPlain ? this.#error('malformed field') : error
  }

  /** Reads the body twice, the first time without the series: metadata and symbols may follow them. */
  readV1(onSeries: (series: TimeSeries) => void): void {
    const end = this.#body.length
    this.#eachField(end, 0b1010, (tag) => {
      if (tag === ((3 << 3) | 2)) this.#readFamily(this.#enter(end))
      else if (tag === ((1 << 3) | 2)) this.#jump(end)
      else return false
      return true
    })
    this.#wire.pos = 0
    this.#eachField(end, 0, (tag) => {
      if (tag !== ((1 << 3) | 2)) return false
      onSeries(this.#readSeriesV1(this.#enter(end)))
      return true
    })
  }

  readV2(onSeries: (series: TimeSeries) => void): void {
    const end = this.#body.length
    this.#eachField(end, 0b110000, (tag) => {
      if (tag === ((4 << 3) | 2)) this.#symbols.push(this.#text(end))
      else if (tag === ((5 << 3) | 2)) this.#jump(end)
      else return false
      return true
    })
    this.#wire.pos = 0
    this.#eachField(end, 0, (tag) => {
      if (tag !== ((5 << 3) | 2)) return false
      onSeries(this.#readSeriesV2(this.#enter(end)))
      return true
    })
  }

  #readSeriesV1(end: number): TimeSeries {
    const labels: string[] = []
    const samples: Sample[] = []
    const exemplars: PromExemplar[] = []
    const histograms: NativeHistogram[] = []
    this.#eachField(end, 0b11110, (tag) => {
      if (tag === ((1 << 3) | 2)) this.#readLabel(this.#enter(end), labels)
      else if (tag === ((2 << 3) | 2)) samples.push(this.#readSample(this.#enter(end)))
      else if (tag === ((3 << 3) | 2)) exemplars.push(this.#readExemplar(this.#enter(end), '1.0'))
      else if (tag === ((4 << 3) | 2)) histograms.push(this.#readHistogram(this.#enter(end)))
      else return false
      return true
    })
    return { labels, metadata: this.#metadataOf(labels), samples, histograms, exemplars }
  }

  #metadataOf(labels: readonly string[]): SeriesMetadata {
    if (this.#families.size === 0) return noMetadata
    const name = labels.find((_, i) => labels[i - 1] === '__name__' && i % 2 === 1) ?? ''
    return familyNames(name).flatMap((family) => this.#families.get(family) ?? [])[0] ?? noMetadata
  }

  #readSeriesV2(end: number): TimeSeries {
    const labels: string[] = []
    const samples: Sample[] = []
    const exemplars: PromExemplar[] = []
    const histograms: NativeHistogram[] = []
    let metadata = noMetadata
    let createdMs = 0
    this.#eachField(end, 0b1111110, (tag) => {
      if (tag === ((1 << 3) | 2)) this.#readPackedSymbols(this.#enter(end), labels)
      else if (tag === ((1 << 3) | 0)) labels.push(this.#symbol(this.#wire.uint32()))
      else if (tag === ((2 << 3) | 2)) samples.push(this.#readSample(this.#enter(end)))
      else if (tag === ((3 << 3) | 2)) histograms.push(this.#readHistogram(this.#enter(end)))
      else if (tag === ((4 << 3) | 2)) exemplars.push(this.#readExemplar(this.#enter(end), '2.0'))
      else if (tag === ((5 << 3) | 2)) metadata = this.#readMetadata(this.#enter(end))
      else if (tag === ((6 << 3) | 0)) createdMs = this.#int64()
      else return false
      return true
    })
    if (labels.length % 2 !== 0) throw this.#error('a label without a value')
    // Earlier drafts have the start beside the samples, the current version has it in each sample.
    const begun = samples.map((sample) => (sample.startMs === 0 ? { ...sample, startMs: createdMs } : sample))
    for (const histogram of histograms) if (histogram.startMs === 0) histogram.startMs = createdMs
    return { labels, metadata, samples: createdMs === 0 ? samples : begun, histograms, exemplars }
  }

  #readFamily(end: number): void {
    let name = ''
    let metadata = noMetadata
    this.#eachField(end, 0b110110, (tag) => {
      if (tag === ((1 << 3) | 0)) metadata = { ...metadata, type: this.#wire.uint32() }
      else if (tag === ((2 << 3) | 2)) name = this.#text(end)
      else if (tag === ((4 << 3) | 2)) metadata = { ...metadata, help: this.#text(end) }
      else if (tag === ((5 << 3) | 2)) metadata = { ...metadata, unit: this.#text(end) }
      else return false
      return true
    })
    this.#families.set(name, metadata)
  }

  #readMetadata(end: number): SeriesMetadata {
    let metadata = noMetadata
    this.#eachField(end, 0b11010, (tag) => {
      if (tag === ((1 << 3) | 0)) metadata = { ...metadata, type: this.#wire.uint32() }
      else if (tag === ((3 << 3) | 0)) metadata = { ...metadata, help: this.#symbol(this.#wire.uint32()) }
      else if (tag === ((4 << 3) | 0)) metadata = { ...metadata, unit: this.#symbol(this.#wire.uint32()) }
      else return false
      return true
    })
    return metadata
  }

  #readLabel(end: number, labels: string[]): void {
    let name = ''
    let value = ''
    this.#eachField(end, 0b110, (tag) => {
      if (tag === ((1 << 3) | 2)) name = this.#text(end)
      else if (tag === ((2 << 3) | 2)) value = this.#text(end)
      else return false
      return true
    })
    labels.push(name, value)
  }

  #readPackedSymbols(stop: number, labels: string[]): void {
    while (this.#isInside(stop)) labels.push(this.#symbol(this.#wire.uint32()))
  }

  #readSample(end: number): Sample {
    let [value, isStale, timeMs, startMs] = [0, false, 0, 0]
    this.#eachField(end, 0b1110, (tag) => {
      if (tag === ((1 << 3) | 1)) {
        isStale = this.#isStaleMarker()
        value = this.#wire.double()
      } else if (tag === ((2 << 3) | 0)) timeMs = this.#int64()
      else if (tag === ((3 << 3) | 0)) startMs = this.#int64()
      else return false
      return true
    })
    return { value, isStale, timeMs, startMs }
  }

  #readExemplar(end: number, version: RemoteWriteVersion): PromExemplar {
    const labels: string[] = []
    let [value, timeMs] = [0, 0]
    this.#eachField(end, 0b1110, (tag) => {
      if (tag === ((1 << 3) | 2) && version === '1.0') this.#readLabel(this.#enter(end), labels)
      else if (tag === ((1 << 3) | 2)) this.#readPackedSymbols(this.#enter(end), labels)
      else if (tag === ((1 << 3) | 0) && version === '2.0') labels.push(this.#symbol(this.#wire.uint32()))
      else if (tag === ((2 << 3) | 1)) value = this.#wire.double()
      else if (tag === ((3 << 3) | 0)) timeMs = this.#int64()
      else return false
      return true
    })
    if (labels.length % 2 !== 0) throw this.#error('a label without a value')
    return { labels, value, timeMs }
  }

  #readHistogram(end: number): NativeHistogram {
    const found = new NativeHistogram()
    this.#eachField(end, 0b11_1111_1111_1111_1110, (tag) => {
      if (tag === ((1 << 3) | 0)) found.count = this.#uint64()
      else if (tag === ((2 << 3) | 1)) found.count = this.#wire.double()
      else if (tag === ((3 << 3) | 1)) {
        found.isStale = this.#isStaleMarker()
        found.sum = this.#wire.double()
      } else if (tag === ((4 << 3) | 0)) found.schema = this.#wire.sint32()
      // The width of the zero bucket (5) has no column.
      else if (tag === ((5 << 3) | 1)) this.#wire.pos += 8
      else if (tag === ((6 << 3) | 0)) found.zeroCount = this.#uint64()
      else if (tag === ((7 << 3) | 1)) found.zeroCount = this.#wire.double()
      else if (tag === ((14 << 3) | 0)) found.isGauge = this.#wire.uint32() === gaugeHint
      else if (tag === ((15 << 3) | 0)) found.timeMs = this.#int64()
      else if (tag === ((17 << 3) | 0)) found.startMs = this.#int64()
      else return this.#readBuckets(tag, end, found)
      return true
    })
    return found
  }

  #readBuckets(tag: number, end: number, found: NativeHistogram): boolean {
    const field = tag >>> 3
    const side = field < 11 ? found.negative : found.positive
    const part = field < 11 ? field - 8 : field - 11
    if (field === 16) return this.#readDoubles(tag, end, found.customBounds)
    if (field < 8 || field > 13) return false
    if (part === 0) {
      if ((tag & 7) !== 2) return false
      side.spans.push(this.#readSpan(this.#enter(end)))
      return true
    }
    return part === 1 ? this.#readDeltas(tag, end, side.deltas) : this.#readDoubles(tag, end, side.counts)
  }

  #readSpan(end: number): BucketSpan {
    let [offset, length] = [0, 0]
    this.#eachField(end, 0b110, (tag) => {
      if (tag === ((1 << 3) | 0)) offset = this.#wire.sint32()
      else if (tag === ((2 << 3) | 0)) length = this.#wire.uint32()
      else return false
      return true
    })
    return { offset, length }
  }

  #readDeltas(tag: number, end: number, into: bigint[]): boolean {
    if ((tag & 7) === 0) into.push(BigInt(this.#wire.sint64()))
    else if ((tag & 7) === 2) {
      for (const stop = this.#enter(end); this.#isInside(stop); ) into.push(BigInt(this.#wire.sint64()))
    } else return false
    return true
  }

  #readDoubles(tag: number, end: number, into: number[]): boolean {
    if ((tag & 7) === 1) into.push(this.#wire.double())
    else if ((tag & 7) === 2) {
      for (const stop = this.#enter(end); this.#isInside(stop); ) into.push(this.#wire.double())
    } else return false
    return true
  }

  /**
   * Reads the fields of a message that stops at `end`.
   *
   * @param known bit set of the message's field numbers; one that `read` doesn't accept has a wrong wire type
   * @param read reads the field and returns true, or reads nothing and returns false
   */
  #eachField(end: number, known: number, read: (tag: number) => boolean): void {
    while (this.#wire.pos < end) {
      const tag = this.#wire.uint32()
      const field = tag >>> 3
      if (field === 0) throw this.#error('invalid field tag')
      if (read(tag)) continue
      if (field < 31 && ((known >>> field) & 1) === 1) {
        throw this.#error(`field ${field} has wire type ${tag & 7}, which is not its type`)
      }
      this.#wire.skip(tag & 7, field)
    }
    if (this.#wire.pos > end) throw this.#error('a field runs past the end of its message')
  }

  #enter(end: number): number {
    const length = this.#wire.uint32()
    const stop = this.#wire.pos + length
    if (stop > end) throw this.#error('truncated')
    return stop
  }

  #jump(end: number): void {
    this.#wire.pos = this.#enter(end)
  }

  #isInside(stop: number): boolean {
    if (this.#wire.pos > stop) throw this.#error('a packed list ends inside a number')
    return this.#wire.pos < stop
  }

  #text(end: number): string {
    const stop = this.#enter(end)
    const start = this.#wire.pos
    this.#wire.pos = stop
    return this.#body.toString('utf8', start, stop)
  }

  #symbol(ref: number): string {
    const symbol = this.#symbols[ref]
    if (symbol === undefined) throw this.#error(`there is no symbol ${ref}`)
    return symbol
  }

  #int64(): number {
    return Number(this.#wire.int64())
  }

  #uint64(): bigint {
    return BigInt(this.#wire.uint64())
  }

  /** Compares the bits: as a number the marker is a NaN like any other. */
  #isStaleMarker(): boolean {
    const { pos } = this.#wire
    return (
      pos + 8 <= this.#body.length &&
      this.#body.readUInt32LE(pos) === 2 &&
      this.#body.readUInt32LE(pos + 4) === 0x7ff0_0000
    )
  }

  #error(what: string): AppError {
    return new AppError('bad_request', {
      sentence: `The body is not such a request: at byte ${this.#wire.pos}: ${what}.`,
    })
  }
}
