// For those who run the service: alive, ready, and the Prometheus metrics page. Public, because a prober has no
// token; nothing here tells of any organisation. Probers are answered however often somebody beside them asks.

import type { FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'
import { z } from 'zod'

const Health = z
  .object({
    status: z.enum(['ok', 'starting', 'disk_full', 'disk_failing']),
    detail: z.string().optional().describe('What is wrong, for a person; absent where nothing is.'),
  })
  .describe('Where the service stands.')

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
  /** Why nothing can be written at present; null where it can. */
  readonly disk: { readonly fault: 'full' | 'failing' | null; readonly sentence: string | null }
}

export function addHealthRoutes(
  http: FastifyInstance,
  { isReady, isClockInDoubt, disk }: HealthSources,
): void {
  const publicRoute = { config: { access: 'public' as const, isUnmetered: true } }
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
        summary:
          'Ready to serve: everything erased or hidden before the start is so again, and the disk takes writes',
        response: { 200: Readiness, 503: Readiness },
      },
    },
    async (_request, reply) => {
      const clock = isClockInDoubt() ? ('in_doubt' as const) : ('ok' as const)
      if (isReady() && disk.fault === null) return { status: 'ok' as const, clock }
      reply.status(503).header('retry-after', '1')
      if (!isReady() || disk.sentence === null) return { status: 'starting' as const, clock }
      return { status: `disk_${disk.fault ?? 'failing'}` as const, detail: disk.sentence, clock }
    },
  )
}

/** Adds the metrics page. Whoever asks while it is being made gets the same one. */
export function addMetricsRoute(http: FastifyInstance, registry: Registry): void {
  let page: Promise<string> | null = null
  const read = () => {
    page ??= registry.metrics().finally(() => {
      page = null
    })
    return page
  }
  http.get('/metrics', { config: { access: 'public' }, schema: { hide: true } }, async (_request, reply) =>
    reply
      .type(registry.contentType)
      .serializer(String)
      .send(await read()),
  )
}
