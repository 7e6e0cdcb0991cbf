// A short run of random requests: no fault, no response that the OpenAPI document does not declare, nothing
// of another organisation. `npm run fuzz` is for long runs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Service, startService } from '../scenario/service.ts'
import { FuzzRun } from './run.ts'

const seed = Number(process.env.LETHE_FUZZ_SEED ?? 7)
const requests = 1000

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.stop())

test('every response is declared in the OpenAPI document, and none is a fault', async (t) => {
  t.diagnostic(`LETHE_FUZZ_SEED=${seed}`)
  const run = await FuzzRun.begin(service, seed)
  for (let i = 0; i < requests; i++) await run.step()
  assert.deepEqual(run.report(), [])
  const reached = [...run.reached.values()].filter((isReached) => isReached).length
  assert.ok(
    reached > run.reached.size * 0.75,
    `${reached} of ${run.reached.size} operations succeeded at least once`,
  )
})
