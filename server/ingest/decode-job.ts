// A body with everything that is needed to decode it, so that this can run in another thread. The bytes are
// as they were received, which may be compressed.

import { AppError } from '../core/app-error.ts'
import type { TenantPlace } from '../telemetry/engine.ts'
import type { Signal } from '../telemetry/schema/tables.ts'
import { decodeExport, type OtlpEncoding } from './otlp/decode-export.ts'
import { decodeRemoteWrite } from './prometheus/remote-write.ts'
import type { RemoteWriteVersion } from './prometheus/remote-write-wire.ts'
import { uncompressSnappy } from './prometheus/snappy.ts'
import { ManyRowBytes } from './rows/row-bytes.ts'
import type { DecodedExport } from './rows/row-collector.ts'
import { type Coding, uncompress } from './uncompress.ts'

interface OtlpJob {
  readonly protocol: 'otlp'
  readonly signal: Signal
  readonly encoding: OtlpEncoding
  readonly coding: Coding
  readonly body: Buffer
  /** The largest uncompressed body, bytes. */
  readonly limitBytes: number
  readonly place: TenantPlace
  /** When the HTTP request arrived; the time of a log record without one. */
  readonly receivedNs: bigint
}

interface RemoteWriteJob {
  readonly protocol: 'remote_write'
  readonly version: RemoteWriteVersion
  /** Compressed. */
  readonly body: Buffer
  /** The largest uncompressed body, bytes. */
  readonly limitBytes: number
  readonly place: TenantPlace
}

export type DecodeJob = OtlpJob | RemoteWriteJob

/** A body as rows. */
export interface DecodedBody {
  /** Size of the uncompressed body. */
  readonly bodyBytes: number
  /** By kind: one kind for OTLP; samples, histograms and exemplars for remote write. */
  readonly parts: readonly DecodedExport[]
}

/** Returns the rows of the body. Throws the errors of the decoders, and `body_too_large`. */
export function runDecode(job: DecodeJob): DecodedBody {
  const decoded = runDecodeWithin(job, { bodyBytes: job.limitBytes })
  if (decoded === null) throw new AppError('body_too_large')
  return decoded
}

interface DecodeLimits {
  /** Of the uncompressed body. */
  readonly bodyBytes: number
  /** Of its rows, which repeat their resource: those of a small body may take a hundred megabytes. */
  readonly rowBytes?: number
}

/** Returns the rows of the body; null where it is above the limits. Throws the errors of the decoders. */
export function runDecodeWithin(job: DecodeJob, limits: DecodeLimits): DecodedBody | null {
  try {
    return decodeWithin(job, limits)
  } catch (error) {
    if (error instanceof ManyRowBytes) return null
    throw error
  }
}

function decodeWithin(job: DecodeJob, { bodyBytes, rowBytes }: DecodeLimits): DecodedBody | null {
  if (job.protocol === 'remote_write') {
    const body = uncompressSnappy(job.body, job.limitBytes)
    return { bodyBytes: body.length, parts: decodeRemoteWrite(job.version, body, job.place, rowBytes) }
  }
  const body = uncompress(job.coding, job.body, Math.min(bodyBytes, job.limitBytes))
  if (body === null) return null
  const arrival = { ...job, rowBytesMax: rowBytes }
  return { bodyBytes: body.length, parts: [decodeExport(job.signal, job.encoding, body, arrival)] }
}
