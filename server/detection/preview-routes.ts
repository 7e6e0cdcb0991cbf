// Choosing a detector, over HTTP: what would suit a metric, and what a detector would have done. It changes nothing, but
// it works as hard as many runs do, so it is for those who may create a detector, previews one at a time for each
// organisation.

import type { FastifyInstance } from 'fastify'
import { DetectorPreview, PreviewDetector } from '../../contract/detection-preview.ts'
import { DetectorSuggestion, SuggestQuery } from '../../contract/detection-suggestion.ts'
import { instantOf } from '../../contract/instant.ts'
import type { Role } from '../../contract/tenancy.ts'
import { AppError, InvalidInput } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import type { Clock } from '../core/clock.ts'
import { route } from '../http/route.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { createProblems, readDraft } from './detectors/detector.ts'
import { backtest } from './runs/backtest.ts'
import type { Evaluate } from './runs/evaluation-pool.ts'
import { suggest } from './suggest.ts'

interface PreviewRouteOptions {
  readonly readerOf: (caller: Caller) => TenantReader
  readonly clock: Clock
  readonly evaluate: Evaluate
}

const editors: readonly Role[] = ['owner', 'admin', 'member']

/** Each replays up to thousands of runs. People change a parameter and look again. */
const previewRate = { perMinute: 20, burst: 10 }

/** Each reads a week of minutes. */
const suggestRate = { perMinute: 30, burst: 15 }

/** Over all organisations: each holds its range in memory. */
const atOnceMax = 2

export function addDetectorPreviewRoutes(
  http: FastifyInstance,
  { clock, evaluate, readerOf }: PreviewRouteOptions,
): void {
  route(http, {
    method: 'GET',
    url: '/anomalies/suggest',
    access: editors,
    tag: 'Detection',
    summary: 'Window, schedule and method that would suit a metric',
    rate: suggestRate,
    query: SuggestQuery,
    result: DetectorSuggestion,
    refusals: [400],
    handle: async ({ caller, query }) => ({ body: await suggest(readerOf(caller), query, clock.nowNs()) }),
  })

  const busy = new Set<string>()
  route(http, {
    method: 'POST',
    url: '/anomalies/detectors/preview',
    access: editors,
    tag: 'Detection',
    summary: 'What a detector would have done over a past range; nothing is kept',
    rate: previewRate,
    body: PreviewDetector,
    check: async (body) => createProblems(body),
    result: DetectorPreview,
    refusals: [400, 429],
    handle: async ({ body, caller }) => {
      const { range_start: start, range_end: end, ...draft } = body
      const read = readDraft(draft)
      if ('problems' in read) throw new InvalidInput(read.problems)
      if (busy.has(caller.tenantId) || busy.size >= atOnceMax) {
        throw new AppError('too_many_requests', {
          sentence: 'Another preview is being computed; repeat after Retry-After.',
          retryAfterSeconds: 5,
        })
      }
      busy.add(caller.tenantId)
      try {
        const nowNs = clock.nowNs()
        const range = { startNs: instantOf(start, nowNs), endNs: instantOf(end, nowNs) }
        return { body: await backtest(readerOf(caller), read.definition, range, { clock, evaluate }) }
      } finally {
        busy.delete(caller.tenantId)
      }
    },
  })
}
