// Decoding for tests that don't depend on the organisation of the rows.

import { decodeExport, type OtlpEncoding } from '../../server/ingest/otlp/decode-export.ts'
import type { DecodedExport } from '../../server/ingest/rows/row-collector.ts'
import type { Signal } from '../../server/telemetry/schema/tables.ts'

/** The organisation of the rows that {@link decodeHere} makes. */
export const here = { tenantId: 'acme', placement: 7 }

export function decodeHere(
  signal: Signal,
  encoding: OtlpEncoding,
  body: Buffer,
  receivedNs: bigint,
): DecodedExport {
  return decodeExport(signal, encoding, body, { place: here, receivedNs })
}
