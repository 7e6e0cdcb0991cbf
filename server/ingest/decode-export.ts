// The door of the decoders: an OTLP request body, already uncompressed and within the size limit, becomes
// rows. Pure: the time of arrival comes in. Every body ends in rows or in one OtlpDecodeError; an error of
// any other kind is our own mistake and passes through unchanged.

import type { Signal } from '../telemetry/schema/tables.ts'
import { decodeLogsJson, decodeLogsProto } from './decode-logs.ts'
import { decodeMetricsJson, decodeMetricsProto } from './decode-metrics.ts'
import { decodeTracesJson, decodeTracesProto } from './decode-traces.ts'
import type { DecodedExport } from './row-collector.ts'

/** The two encodings of OTLP/HTTP: `application/x-protobuf` and `application/json`. */
export type OtlpEncoding = 'protobuf' | 'json'

/**
 * Decodes an `Export<Signal>ServiceRequest`. An empty protobuf body is a valid request without records.
 *
 * @param receivedNs when the request arrived; the time of a log record that has none
 * @throws OtlpDecodeError when the body as a whole can't be read; nothing of it may then be stored
 */
export function decodeExport(
  signal: Signal,
  encoding: OtlpEncoding,
  body: Buffer,
  receivedNs: bigint,
): DecodedExport {
  return encoding === 'json' ? decodeJson(signal, body, receivedNs) : decodeProto(signal, body, receivedNs)
}

function decodeJson(signal: Signal, body: Buffer, receivedNs: bigint): DecodedExport {
  switch (signal) {
    case 'metrics':
      return decodeMetricsJson(body)
    case 'logs':
      return decodeLogsJson(body, receivedNs)
    case 'traces':
      return decodeTracesJson(body)
  }
}

function decodeProto(signal: Signal, body: Buffer, receivedNs: bigint): DecodedExport {
  switch (signal) {
    case 'metrics':
      return decodeMetricsProto(body)
    case 'logs':
      return decodeLogsProto(body, receivedNs)
    case 'traces':
      return decodeTracesProto(body)
  }
}
