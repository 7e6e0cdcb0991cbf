// Decodes one body with the product's decoder and with the reference: the same rows, or a refusal from both.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import { OtlpDecodeError } from '../../server/ingest/rows/otlp-decode-error.ts'
import type { DecodedExport } from '../../server/ingest/rows/row-collector.ts'
import type { Signal } from '../../server/telemetry/schema/tables.ts'
import { arbitraryExport } from './arbitrary-export.ts'
import { decodeHere } from './decode-here.ts'
import { mutate, seeded } from './mutate.ts'
import { changeKind, repeatKeys } from './mutate-meaning.ts'
import { encodeProto } from './otlp-messages.ts'
import { referenceDecode } from './reference-decoder.ts'
import { withoutRepeatedKeys } from './repeated-keys.ts'

const receivedNs = 1_700_000_000_000_000_007n

interface FuzzCount {
  bodies: number
  refused: number
  rows: number
  /** Bodies with rows in which an attribute list repeated a key. */
  repeatedKeys: number
  /** Bodies with rows in which the data of a metric changed its kind. */
  changedKinds: number
}

export const noneYet = (): FuzzCount => ({ bodies: 0, refused: 0, rows: 0, repeatedKeys: 0, changedKinds: 0 })

/**
 * For each of `messages` random messages: compares a valid body, `mutants` changed forms of it, and some
 * well-formed bodies with a rare meaning.
 */
export function fuzzDecoders(signal: Signal, seed: number, messages: number, mutants: number): FuzzCount {
  const random = seeded(seed)
  const count = noneYet()
  for (const message of fc.sample(arbitraryExport[signal], { numRuns: messages, seed })) {
    const body = encodeProto(signal, message)
    compare(signal, body, count)
    for (let i = 0; i < mutants; i++) {
      compare(signal, mutate(signal, body, random), count)
      if (i % rareEvery !== 0) continue
      const repeated = repeatKeys(signal, body, random)
      if (repeated !== null) compare(signal, repeated, count)
      const changed = signal === 'metrics' ? changeKind(repeated ?? body, random) : null
      if (changed !== null && compare(signal, changed, count)) count.changedKinds++
    }
  }
  return count
}

/** One body of each rare kind per this many mutants. */
const rareEvery = 5

/** Whether the body had rows. */
function compare(signal: Signal, body: Buffer, count: FuzzCount): boolean {
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
    return false
  }
  // Removed here, because both decoders would put them into the same map of ours.
  const { message, repeated } = withoutRepeatedKeys(reference)
  const expected = decodeHere(signal, 'json', Buffer.from(JSON.stringify(message)), receivedNs)
  assert.deepEqual(own, expected, what())
  count.rows += own.accepted
  if (repeated > 0 && own.accepted > 0) count.repeatedKeys++
  return own.accepted > 0
}

function decodeOrNull(signal: Signal, body: Buffer): DecodedExport | null {
  try {
    return decodeHere(signal, 'protobuf', body, receivedNs)
  } catch (error) {
    assert.ok(error instanceof OtlpDecodeError, String(error))
    return null
  }
}
