// For those who run the service: alive, ready, and the Prometheus metrics page. Public, because a prober has no
// token; nothing here tells of any organisation.

import type { FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'
import { z } from 'zod'

const Health = z.object({ status: z.enum(['ok', 'starting']) }).describe('Where the service stands.')

export function addHealthRoutes(http: FastifyInstance, registry: Registry, isReady: () => boolean): void {
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
        response: { 200: Health, 503: Health },
      },
    },
    async (_request, reply) => {
      if (isReady()) return { status: 'ok' as const }
      return reply.status(503).header('retry-after', '1').send({ status: 'starting' })
    },
  )
  http.get('/metrics', { ...publicRoute, schema: { hide: true } }, async (_request, reply) =>
    reply
      .type(registry.contentType)
      .serializer(String)
      .send(await registry.metrics()),
  )
}
