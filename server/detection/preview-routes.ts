// Helps to choose a detector, over HTTP: what suits a metric, and what a detector would have done, with the
// deploys that its anomalies began with. It changes nothing, but a preview costs as much as many runs. So it
// is for those who may create a detector, and each organisation has one preview at a time.

import type { FastifyInstance } from 'fastify'
import { detectorOperations } from '../../contract/operations/detectors.ts'
import { instantOf } from '../../contract/values/instant.ts'
import { AppError } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import type { Clock } from '../core/clock.ts'
import { serve } from '../http/serve.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { previewWithDeploys } from './anomaly-deploys.ts'
import { readCreation } from './detectors/detector.ts'
import { backtest } from './runs/backtest.ts'
import type { Evaluations } from './runs/evaluation-pool.ts'
import { suggest } from './suggest.ts'

interface PreviewRouteOptions {
  readonly readerOf: (caller: Caller) => TenantReader
  readonly clock: Clock
  readonly evaluations: Evaluations
}

/** Over all organisations: each keeps its range in memory. */
const atOnceMax = 2

export function addDetectorPreviewRoutes(
  http: FastifyInstance,
  { clock, evaluations, readerOf }: PreviewRouteOptions,
): void {
  serve(http, detectorOperations.suggest, {
    handle: async ({ caller, query }) => ({
      body: await suggest(readerOf(caller), query, { clock, evaluations }),
    }),
  })

  const busy = new Set<string>()
  serve(http, detectorOperations.preview, {
    parse: readCreation,
    handle: async ({ body, caller, value: definition }) => {
      if (busy.has(caller.tenantId) || busy.size >= atOnceMax) {
        throw new AppError('too_many_requests', {
          sentence: 'Another preview is being computed; repeat after Retry-After.',
          retryAfterSeconds: 5,
        })
      }
      busy.add(caller.tenantId)
      try {
        const nowNs = clock.nowNs()
        const range = { startNs: instantOf(body.range_start, nowNs), endNs: instantOf(body.range_end, nowNs) }
        const reader = readerOf(caller)
        const preview = await backtest(reader, definition, range, { clock, evaluations })
        return { body: await previewWithDeploys(reader, definition, preview) }
      } finally {
        busy.delete(caller.tenantId)
      }
    },
  })
}
