// The entry of the decoders: turns the body of an OTLP request, uncompressed and within the size limit, into
// rows. Pure: the time of arrival and the organisation are parameters. Every body results in rows or in one
// OtlpDecodeError; any other error is a defect of ours and passes through unchanged.

import type { TenantPlace } from '../../telemetry/engine.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import type { DecodedExport, RowOrigin } from '../rows/row-collector.ts'
import { decodeLogsJson, decodeLogsProto } from './decode-logs.ts'
import { decodeMetricsJson, decodeMetricsProto } from './decode-metrics.ts'
import { decodeTracesJson, decodeTracesProto } from './decode-traces.ts'

/** The two encodings of OTLP/HTTP: `application/x-protobuf` and `application/json`. */
export type OtlpEncoding = 'protobuf' | 'json'

/** What is not part of the body. */
interface Arrival {
  /** The sender's organisation and placement, which are written into every row. */
  readonly place: TenantPlace
  /** When the HTTP request arrived; the time of a log record without one. */
  readonly receivedNs: bigint
  /** As in {@link RowOrigin}. */
  readonly rowBytesMax?: number | undefined
}

/**
 * Decodes an `Export<Signal>ServiceRequest`. An empty protobuf body is a valid request without records.
 *
 * @throws OtlpDecodeError where the body as a whole can't be read; nothing of it may then be stored. AppError
 * `body_too_large` where its rows would be out of proportion to its size. ManyRowBytes above `rowBytesMax`.
 */
export function decodeExport(
  signal: Signal,
  encoding: OtlpEncoding,
  body: Buffer,
  { place, receivedNs, rowBytesMax }: Arrival,
): DecodedExport {
  const decoder = decoders[signal][encoding]
  return decoder({ place, body, rowBytesMax }, receivedNs)
}

type Decode = (origin: RowOrigin, receivedNs: bigint) => DecodedExport

const decoders: Readonly<Record<Signal, Readonly<Record<OtlpEncoding, Decode>>>> = {
  metrics: { protobuf: decodeMetricsProto, json: decodeMetricsJson },
  logs: { protobuf: decodeLogsProto, json: decodeLogsJson },
  traces: { protobuf: decodeTracesProto, json: decodeTracesJson },
}
