// Decoding for tests that don't care whose rows come out.

import { decodeExport, type OtlpEncoding } from '../../server/ingest/otlp/decode-export.ts'
import type { DecodedExport } from '../../server/ingest/rows/row-collector.ts'
import type { Signal } from '../../server/telemetry/schema/tables.ts'

/** Whose rows {@link decodeHere} makes. */
export const here = { tenantId: 'acme', placement: 7 }

export function decodeHere(
  signal: Signal,
  encoding: OtlpEncoding,
  body: Buffer,
  receivedNs: bigint,
): DecodedExport {
  return decodeExport(signal, encoding, body, { place: here, receivedNs })
}
