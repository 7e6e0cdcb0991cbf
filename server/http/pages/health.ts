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
  /** Returns the problem of the control-plane database; null where it answers. Cheap. */
  readonly controlWatch: { fault(): Promise<string | null> }
}

export function addHealthRoutes(
  http: FastifyInstance,
  { isReady, isClockInDoubt, disk, controlWatch }: HealthSources,
): void {
  http.route({ ...routeOf(pageOperations.health), handler: async () => ({ status: 'ok' as const }) })
  http.route({
    ...routeOf(pageOperations.readiness),
    handler: async (_request, reply) => {
      const clock = isClockInDoubt() ? ('in_doubt' as const) : ('ok' as const)
      const refuse = <S extends string>(status: S, detail?: string) => {
        reply.status(503).header('retry-after', '1')
        return { status, ...(detail !== undefined && { detail }), clock }
      }
      if (!isReady()) return refuse('starting')
      if (disk.fault !== null) return refuse(`disk_${disk.fault}`, disk.sentence ?? undefined)
      // Without it no token can be looked up, so another node, where there is one, should get the requests.
      const fault = await controlWatch.fault()
      return fault === null ? { status: 'ok' as const, clock } : refuse('control_unavailable', fault)
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
