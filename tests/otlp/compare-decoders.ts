// One body through the product's decoder and through the reference: the same rows, or a refusal from both.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import { OtlpDecodeError } from '../../server/ingest/otlp-decode-error.ts'
import type { DecodedExport } from '../../server/ingest/row-collector.ts'
import type { Signal } from '../../server/telemetry/schema/tables.ts'
import { arbitraryExport } from './arbitrary-export.ts'
import { decodeHere } from './decode-here.ts'
import { mutate, seeded } from './mutate.ts'
import { encodeProto } from './otlp-messages.ts'
import { referenceDecode } from './reference-decoder.ts'

const receivedNs = 1_700_000_000_000_000_007n

export interface FuzzCount {
  bodies: number
  refused: number
  rows: number
}

/** Compares a valid body and `mutants` changed forms of it, for each of `messages` random messages of each signal. */
export function fuzzDecoders(signal: Signal, seed: number, messages: number, mutants: number): FuzzCount {
  const random = seeded(seed)
  const count: FuzzCount = { bodies: 0, refused: 0, rows: 0 }
  for (const message of fc.sample(arbitraryExport[signal], { numRuns: messages, seed })) {
    const body = encodeProto(signal, message)
    compare(signal, body, count)
    for (let i = 0; i < mutants; i++) compare(signal, mutate(signal, body, random), count)
  }
  return count
}

function compare(signal: Signal, body: Buffer, count: FuzzCount): void {
  const own = decodeOrNull(signal, body)
  const reference = referenceDecode(signal, body)
  const what = () => `${signal} ${body.toString('base64')}`
  count.bodies++
  if (own === null || reference === null) {
    assert.equal(
      own === null,
      reference === null,
      `${own === null ? 'only own' : 'only reference'} refuses ${what()}`,
    )
    count.refused++
    return
  }
  const expected = decodeHere(signal, 'json', Buffer.from(JSON.stringify(reference)), receivedNs)
  assert.deepEqual(own, expected, what())
  count.rows += own.accepted
}

function decodeOrNull(signal: Signal, body: Buffer): DecodedExport | null {
  try {
    return decodeHere(signal, 'protobuf', body, receivedNs)
  } catch (error) {
    assert.ok(error instanceof OtlpDecodeError, String(error))
    return null
  }
}
