// A body with everything that is needed to decode it, so that this can run in another thread. The bytes are
// as they were received: those of remote write are still compressed.

import type { TenantPlace } from '../telemetry/engine.ts'
import type { Signal } from '../telemetry/schema/tables.ts'
import { decodeExport, type OtlpEncoding } from './otlp/decode-export.ts'
import { decodeRemoteWrite } from './prometheus/remote-write.ts'
import type { RemoteWriteVersion } from './prometheus/remote-write-wire.ts'
import { unsnap } from './prometheus/snappy.ts'
import type { DecodedExport } from './rows/row-collector.ts'

interface OtlpJob {
  readonly protocol: 'otlp'
  readonly signal: Signal
  readonly encoding: OtlpEncoding
  readonly body: Buffer
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

/**
 * Returns the records by kind: one kind for OTLP; samples, histograms and exemplars for remote write. Throws
 * the errors of the decoders.
 */
export function runDecode(job: DecodeJob): readonly DecodedExport[] {
  if (job.protocol === 'otlp') return [decodeExport(job.signal, job.encoding, job.body, job)]
  return decodeRemoteWrite(job.version, unsnap(job.body, job.limitBytes), job.place)
}
