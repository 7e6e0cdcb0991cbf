// Helps to choose a detector, over HTTP: what suits a metric, and what a detector would have done, with the
// deploys that its anomalies began with. It changes nothing, but a preview costs as much as many runs. So it
// is for those who may create a detector, and each organisation has one preview at a time. Organisations take
// turns: whoever has used previews least is next.

import type { FastifyInstance } from 'fastify'
import { detectorOperations } from '../../contract/operations/detectors.ts'
import { instantOf } from '../../contract/values/instant.ts'
import { AppError } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import { type Clock, elapsedMs } from '../core/clock.ts'
import { coresButOne } from '../core/turns/core-use.ts'
import { FairPool } from '../core/turns/fair-pool.ts'
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
  readonly isReady: () => boolean
  /** Previews at the same time, over all organisations; absent: all cores but one, two at most. */
  readonly atOnce?: number
}

/**
 * Each preview keeps its range in memory. It also keeps a core busy, with a read or with an evaluation, and
 * the statements of everybody else wait where no core is free: so there are fewer than cores.
 */
const atOnceMost = 2

/** Repeats of a preview during which something was hidden: it takes up to twenty seconds each time. */
const never = 0

export function addDetectorPreviewRoutes(
  http: FastifyInstance,
  { atOnce = coresButOne(atOnceMost), clock, evaluations, isReady, readerOf }: PreviewRouteOptions,
): void {
  serve(http, detectorOperations.suggest, {
    handle: ({ caller, query }) => {
      const reader = readerOf(caller)
      return reader.answer(() => suggest(reader, query, { clock, evaluations }), { repeatsMax: never })
    },
  })

  const busy = new Set<string>()
  const rule = { atOnceByOwner: 1, atOnce, weight: 1, waitingByOwner: 1 }
  const places = Array.from({ length: atOnce }, () => null)
  const turns = new FairPool(places, {
    kinds: { asked: rule, background: rule },
    waiting: Number.POSITIVE_INFINITY,
    nowMs: elapsedMs,
  })
  serve(http, detectorOperations.preview, {
    parse: readCreation,
    handle: async ({ body, caller, value: definition }) => {
      if (busy.has(caller.tenantId)) {
        throw new AppError('too_many_requests', {
          sentence: 'Another preview of your organisation is being computed; repeat after Retry-After.',
          retryAfterSeconds: 5,
        })
      }
      busy.add(caller.tenantId)
      try {
        const { signal, tenantId } = caller
        return await turns.lend({ owner: tenantId, kind: 'asked', signal }, async () => {
          // A stop waits for requests under way, and should not wait for all previews one after the other.
          if (!isReady()) throw new AppError('not_ready')
          const nowNs = clock.nowNs()
          const range = {
            startNs: instantOf(body.range_start, nowNs),
            endNs: instantOf(body.range_end, nowNs),
          }
          const reader = readerOf(caller)
          const replay = () => backtest(reader, definition, range, { clock, evaluations })
          return reader.answer(async () => previewWithDeploys(reader, definition, await replay()), {
            repeatsMax: never,
          })
        })
      } finally {
        busy.delete(caller.tenantId)
      }
    },
  })
}
