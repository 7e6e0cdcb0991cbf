// How fast OTLP bodies become rows, without engine and network: rows per second and MB per second of body for
// each signal and encoding. The body is that of a Collector in the other ingest benches: eight resources with
// 256 records each. Each figure is the median of many passes after warm-up, by CPU time, which other work of
// the machine changes least, and includes garbage collection.
//
// npm run bench -- ingest/decode [seconds per case, 2 by default]

import { decodeExport, type OtlpEncoding } from '../../server/ingest/otlp/decode-export.ts'
import { type Signal, signals } from '../../server/telemetry/schema/tables.ts'
import { encodeProto } from '../../tests/otlp/otlp-messages.ts'
import { report } from '../report.ts'
import { quantile } from '../samples.ts'
import { ingestMessages, startNs } from './payloads.ts'

const place = { tenantId: 'acme', placement: 0 }

/** CPU time of this process so far, milliseconds. */
function cpuMs(): number {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1000
}

function measure(signal: Signal, encoding: OtlpEncoding, seconds: number): void {
  const [, message = {}] = ingestMessages(signal, 2, 1)
  const body = encoding === 'json' ? Buffer.from(JSON.stringify(message)) : encodeProto(signal, message)
  const decode = () => decodeExport(signal, encoding, body, { place, receivedNs: startNs })
  const { accepted: rows } = decode()
  const passes: number[] = []
  const warmUntil = cpuMs() + 500
  const until = warmUntil + seconds * 1_000
  for (let now = cpuMs(); now < until; ) {
    const { accepted } = decode()
    if (accepted !== rows) throw new Error(`${signal} ${encoding}: ${accepted} of ${rows} rows were accepted`)
    const after = cpuMs()
    if (now > warmUntil) passes.push(after - now)
    now = after
  }
  const medianMs = quantile(passes, 0.5)
  report('Decoding', {
    signal,
    encoding,
    'rows/s': Math.round((rows / medianMs) * 1_000),
    'MB/s': Math.round(body.length / medianMs / 1_000),
    'body bytes a row': Math.round(body.length / rows),
  })
}

const secondsPerCase = Number(process.argv[2] ?? 2)
for (const signal of signals) {
  for (const encoding of ['protobuf', 'json'] as const) measure(signal, encoding, secondsPerCase)
}
