// Organisations and tokens behind the real HTTP server, for tests.

import type { FastifyInstance } from 'fastify'
import { silent } from '../../tests/fixtures.ts'
import type { Control } from '../control/database.ts'
import type { Clock } from '../core/clock.ts'
import { byAccessToken } from '../http/authentication.ts'
import { createHttp } from '../http/server.ts'
import { addTenancyRoutes } from './routes.ts'
import { TenancyStore } from './store.ts'

/** The routes of organisations and tokens. The server does not listen yet; the test closes it. */
export function tenancyHttp(control: Control, clock: Clock): { http: FastifyInstance; store: TenancyStore } {
  const store = new TenancyStore(control, clock)
  const http = createHttp({
    clock,
    logger: silent,
    authenticate: byAccessToken((secret) => store.findCaller(secret)),
    isReady: () => true,
  })
  addTenancyRoutes(http, store, clock, async () => {})
  return { http, store }
}
