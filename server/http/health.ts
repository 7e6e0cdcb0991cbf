// For those who run the service: alive, ready, and the Prometheus metrics page. Public, because a prober has no
// token; nothing here tells of any organisation.

import type { FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'
import { z } from 'zod'

const Health = z.object({ status: z.enum(['ok', 'starting']) }).describe('Where the service stands.')

const Readiness = Health.extend({
  clock: z
    .enum(['ok', 'in_doubt'])
    .describe(
      'in_doubt: the clock jumped by more than a day, so retention, expiry of backups and delayed deletions are paused until the operator runs `lethe clock confirm`.',
    ),
})

export interface HealthSources {
  readonly isReady: () => boolean
  readonly isClockInDoubt: () => boolean
}

export function addHealthRoutes(
  http: FastifyInstance,
  registry: Registry,
  { isReady, isClockInDoubt }: HealthSources,
): void {
  const publicRoute = { config: { access: 'public' as const } }
  http.get(
    '/healthz',
    {
      ...publicRoute,
      schema: {
        operationId: 'getHealth',
        tags: ['Operations'],
        summary: 'The process answers',
        response: { 200: Health },
      },
    },
    async () => ({ status: 'ok' as const }),
  )
  http.get(
    '/readyz',
    {
      ...publicRoute,
      schema: {
        operationId: 'getReadiness',
        tags: ['Operations'],
        summary: 'Ready to serve: everything erased or hidden before the start is so again',
        response: { 200: Readiness, 503: Readiness },
      },
    },
    async (_request, reply) => {
      const clock = isClockInDoubt() ? ('in_doubt' as const) : ('ok' as const)
      if (isReady()) return { status: 'ok' as const, clock }
      return reply.status(503).header('retry-after', '1').send({ status: 'starting', clock })
    },
  )
  http.get('/metrics', { ...publicRoute, schema: { hide: true } }, async (_request, reply) =>
    reply
      .type(registry.contentType)
      .serializer(String)
      .send(await registry.metrics()),
  )
}
