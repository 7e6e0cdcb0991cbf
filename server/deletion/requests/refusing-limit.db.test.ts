// The limit of deletions that refuse late telemetry: they never end, so one person must not use up those of
// the organisation.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openControlPlane } from '../../../tests/control-planes.ts'
import { type Actor, operatorActor } from '../../core/actor.ts'
import { InvalidInput } from '../../core/app-error.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { TenancyStore } from '../../tenancy/store.ts'
import { newTokenSecret } from '../../tenancy/tenancy.ts'
import { between, monday, requestStoreOn } from '../deletion-fixture.ts'
import { repeatRequest } from './repeated-fixture.ts'

const { control, close } = await openControlPlane()
after(close)
const clock = new ManualClock(1_800_000_000_000)
const tenancy = new TenancyStore(control, clock)
const operator = operatorActor('command-line')
const tenantId = 'acme'
await tenancy.createOrganisation({ tenantId, name: 'Acme', actor: operator }, async () => {})
const store = requestStoreOn(control, clock)
let requested = 0

/** Creates a token and returns its actor. */
async function make(actor: Actor): Promise<Actor> {
  const secret = newTokenSecret('admin')
  await tenancy.createToken({ tenantId, name: 'x', role: 'admin', secret, expiresAtMs: null, actor })
  const caller = await tenancy.findCaller(secret)
  return caller?.requester ?? assert.fail('the token is not known')
}

async function request(requester: Actor, refuseLate = true): Promise<string> {
  const startNs = monday + BigInt(++requested)
  const draft = { ...between(startNs, startNs + 1n), refuseLate }
  const { row } = await store.create(tenantId, draft, { requester, idempotencyKey: null })
  await complete()
  return row.request_id
}

const complete = () =>
  control
    .updateTable('deletion_requests')
    .set({ status: 'completed', finished_at_ms: clock.nowMs() })
    .where('status', '=', 'running')
    .execute()

const refusedAt = (limit: number) => (error: unknown) => {
  assert.ok(error instanceof InvalidInput)
  assert.deepEqual(
    error.problems.map(({ ctx, loc }) => [loc, ctx]),
    [[['body', 'refuse_late'], { limit }]],
  )
  return true
}

test('one person requests at most half of the deletions that refuse late telemetry, with any of their tokens', async () => {
  const [ada, ben] = [await make(operator), await make(operator)]
  const child = await make(ada)
  await repeatRequest(control, await request(ada), 1249)
  await repeatRequest(control, await request(child), 1248)
  await request(ada)
  await assert.rejects(request(ada), refusedAt(2500))
  await assert.rejects(request(child), refusedAt(2500))
  await request(ada, false)
  await repeatRequest(control, await request(ben), 2499)
  const carla = await make(operator)
  await assert.rejects(request(carla), refusedAt(5000), 'the organisation has as many as it may have')
})
