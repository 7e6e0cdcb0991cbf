// Compares the hand-written protobuf decoder with another one, on random messages and on damaged and unusual
// forms of them. `node tests/otlp/fuzz-decoders.ts` does the same without an end.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fuzzDecoders } from '../../../tests/otlp/compare-decoders.ts'
import { signals } from '../../telemetry/schema/tables.ts'

const seed = Number(process.env.LETHE_FUZZ_SEED ?? 20_261)

for (const signal of signals) {
  test(`${signal}: random and mutated bodies give the rows or the refusal of the reference decoder`, (t) => {
    const count = fuzzDecoders(signal, seed, 75, 20)
    t.diagnostic(
      `seed ${seed}: ${count.bodies} bodies, ${count.refused} refused by both, ${count.rows} equal rows; ${count.repeatedKeys} bodies with repeated keys, ${count.changedKinds} with a kind changed`,
    )
    assert.ok(count.refused > count.bodies / 10 && count.rows > count.bodies / 10)
    assert.ok(count.repeatedKeys > 50)
    if (signal === 'metrics') assert.ok(count.changedKinds > 50)
  })
}
