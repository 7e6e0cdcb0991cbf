// For operators: liveness, readiness, and the Prometheus metrics page. Public, because a prober has no token;
// nothing here reveals anything about an organisation. Probers are served however many requests come from the
// same address.

import type { FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'
import { pageOperations } from '../../../contract/operations/pages.ts'
import { routeOf } from '../serve.ts'

export interface HealthSources {
  readonly isReady: () => boolean
  readonly isClockInDoubt: () => boolean
  /** Why nothing can be written at present; null where writing works. */
  readonly disk: { readonly fault: 'full' | 'failing' | null; readonly sentence: string | null }
}

export function addHealthRoutes(
  http: FastifyInstance,
  { isReady, isClockInDoubt, disk }: HealthSources,
): void {
  http.route({ ...routeOf(pageOperations.health), handler: async () => ({ status: 'ok' as const }) })
  http.route({
    ...routeOf(pageOperations.readiness),
    handler: async (_request, reply) => {
      const clock = isClockInDoubt() ? ('in_doubt' as const) : ('ok' as const)
      if (isReady() && disk.fault === null) return { status: 'ok' as const, clock }
      reply.status(503).header('retry-after', '1')
      if (!isReady() || disk.sentence === null) return { status: 'starting' as const, clock }
      return { status: `disk_${disk.fault ?? 'failing'}` as const, detail: disk.sentence, clock }
    },
  })
}

/** Adds the metrics page. Clients that request it while it is being made share one page. */
export function addMetricsRoute(http: FastifyInstance, registry: Registry): void {
  let page: Promise<string> | null = null
  const read = () => {
    page ??= registry.metrics().finally(() => {
      page = null
    })
    return page
  }
  http.route({
    ...routeOf(pageOperations.metrics),
    handler: async (_request, reply) =>
      reply
        .type(registry.contentType)
        .serializer(String)
        .send(await read()),
  })
}
