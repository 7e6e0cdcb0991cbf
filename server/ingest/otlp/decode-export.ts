// The door of the decoders: an OTLP request body, already uncompressed and within the size limit, becomes
// rows. Pure: the time of arrival and whose rows they are come in. Every body ends in rows or in one
// OtlpDecodeError; an error of any other kind is our own mistake and passes through unchanged.

import type { TenantPlace } from '../../telemetry/engine.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import type { DecodedExport, RowOrigin } from '../rows/row-collector.ts'
import { decodeLogsJson, decodeLogsProto } from './decode-logs.ts'
import { decodeMetricsJson, decodeMetricsProto } from './decode-metrics.ts'
import { decodeTracesJson, decodeTracesProto } from './decode-traces.ts'

/** The two encodings of OTLP/HTTP: `application/x-protobuf` and `application/json`. */
export type OtlpEncoding = 'protobuf' | 'json'

/** What a body can't say about itself. */
interface Arrival {
  /** The sender's place, which is written into every row. */
  readonly place: TenantPlace
  /** When the request arrived; the time of a log record that has none. */
  readonly receivedNs: bigint
}

/**
 * Decodes an `Export<Signal>ServiceRequest`. An empty protobuf body is a valid request without records.
 *
 * @throws OtlpDecodeError when the body as a whole can't be read; nothing of it may then be stored. AppError
 * `body_too_large` when its rows would be out of all proportion to it.
 */
export function decodeExport(
  signal: Signal,
  encoding: OtlpEncoding,
  body: Buffer,
  { place, receivedNs }: Arrival,
): DecodedExport {
  const decoder = decoders[signal][encoding]
  return decoder({ place, body }, receivedNs)
}

type Decode = (origin: RowOrigin, receivedNs: bigint) => DecodedExport

const decoders: Readonly<Record<Signal, Readonly<Record<OtlpEncoding, Decode>>>> = {
  metrics: { protobuf: decodeMetricsProto, json: decodeMetricsJson },
  logs: { protobuf: decodeLogsProto, json: decodeLogsJson },
  traces: { protobuf: decodeTracesProto, json: decodeTracesJson },
}
