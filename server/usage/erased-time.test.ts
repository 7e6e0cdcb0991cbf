// Erased time of an organisation that has erased very many ranges: in pages, and with turns for others.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { paceOfSteps } from '../../tests/with-turns.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { listErasedTime } from './erased-time.ts'

const count = 1000
const idAt = (at: number) => `del_${String(at).padStart(4, '0')}`

/** Erasures of disjoint seconds, marked in another order than that of their ids. */
function erasedSeconds(): TelemetryGate {
  const gate = new TelemetryGate()
  for (let i = 0; i < count; i++) {
    const at = (i * 389) % count
    const startNs = BigInt(2 * at) * 1_000_000_000n
    const range = { startNs, endNs: startNs + 1_000_000_000n }
    gate.markErased('acme', { id: idAt(at), signals: ['logs'], range })
  }
  return gate
}

test('pages of very many erasures have each once, newest first, and others have turns meanwhile', async () => {
  const gate = erasedSeconds()
  const { pace, turns } = paceOfSteps()
  const found: string[] = []
  let cursor: string | undefined
  do {
    const query = { limit: 100, ...(cursor !== undefined && { cursor }) }
    const page = await listErasedTime(gate, 'acme', query, { nowNs: 0n, pace })
    found.push(...page.items.map(({ request_id: id }) => id))
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
  assert.deepEqual(
    found,
    Array.from({ length: count }, (_, i) => idAt(count - 1 - i)),
  )
  assert.ok(turns() >= count / 20, `${turns()} turns`)
})
