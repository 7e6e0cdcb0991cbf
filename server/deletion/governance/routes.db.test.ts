// Legal holds over HTTP: a repeated release changes and wakes nothing, and a loop of releases is limited.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openControlPlane } from '../../../tests/control-planes.ts'
import { silent } from '../../../tests/fixtures.ts'
import { readHead } from '../../audit/log.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { byAccessToken } from '../../http/authentication.ts'
import { createHttp } from '../../http/server.ts'
import { findRelated } from '../../tenancy/lineage.ts'
import { LegalHolds } from './holds.ts'
import { DeletionPolicies } from './policy.ts'
import { addGovernanceRoutes } from './routes.ts'

const { control, close } = await openControlPlane()
const clock = new ManualClock(1_763_717_400_000)
const holds = new LegalHolds(control, clock, findRelated)
let nudges = 0
const http = createHttp({
  clock,
  logger: silent,
  // The secret of a token is the name of its organisation here.
  authenticate: byAccessToken(async (tenantId) => ({
    ...{ tenantId, placement: 0, organisationName: tenantId, role: 'owner' },
    requester: tokenNamed('owner'),
  })),
  isReady: () => true,
})
addGovernanceRoutes(http, {
  holds,
  policies: new DeletionPolicies(control, clock),
  placeHold: ({ requester, tenantId }, body) => holds.place(tenantId, body, requester),
  nudge: () => {
    nudges++
  },
})
await http.ready()
after(async () => {
  await http.close()
  await close()
})

async function post(tenantId: string, path: string, payload?: object) {
  const headers = { authorization: `Bearer ${tenantId}` }
  const url = `/usage/storage/holds${path}`
  const answer = await http.inject({
    method: 'POST',
    url,
    headers,
    ...(payload !== undefined && { payload }),
  })
  return { status: answer.statusCode, body: answer.json(), retryAfter: answer.headers['retry-after'] }
}

const place = (tenantId: string) => post(tenantId, '', { case_ref: 'case 1' })
const entriesOf = async (tenantId: string) => (await readHead(control, 'audit_entries', tenantId)).entries

test('a release that is repeated returns the first one, writes nothing and wakes nothing', async () => {
  const { body: hold } = await place('lethe_first')
  const first = await post('lethe_first', `/${hold.id}/release`)
  assert.deepEqual([first.status, nudges, await entriesOf('lethe_first')], [200, 1, 2])
  await clock.advance(1000)
  const again = await post('lethe_first', `/${hold.id}/release`)
  assert.deepEqual([again, nudges, await entriesOf('lethe_first')], [first, 1, 2])
  assert.equal((await post('lethe_second', `/${hold.id}/release`)).status, 404)
})

test('releases are limited, each organisation by itself', async () => {
  const release = (tenantId: string) => post(tenantId, '/hld_1/release')
  for (let i = 0; i < 200; i++) assert.equal((await release('lethe_looping')).status, 404)
  const { body, retryAfter, status } = await release('lethe_looping')
  assert.deepEqual([status, body.code, retryAfter], [429, 'too_many_requests', '1'])
  assert.equal((await release('lethe_neighbour')).status, 404)
})
