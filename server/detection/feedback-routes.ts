// Feedback and mutes over HTTP.

import type { FastifyInstance } from 'fastify'
import { anomalyOperations } from '../../contract/operations/anomalies.ts'
import { AppError } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import { decodeCursor, pageOfRows } from '../core/input/cursor.ts'
import { Pace } from '../core/turns/pace.ts'
import { serve } from '../http/serve.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import type { FeedbackStore } from './anomalies/feedback-store.ts'
import { readMute } from './anomalies/mute.ts'
import type { DetectionStore } from './detectors/store.ts'

export function addFeedbackRoutes(
  http: FastifyInstance,
  store: DetectionStore,
  readerOf: (caller: Caller) => TenantReader,
): void {
  const { feedback } = store
  serve(http, anomalyOperations.giveFeedback, {
    handle: async ({ body, caller, params }) => {
      const find = async () => {
        const anomaly = await store.findAnomaly(caller.tenantId, params.anomaly_id)
        if (anomaly === null) throw new AppError('not_found')
        return anomaly
      }
      await find()
      await feedback.giveFeedback(caller.tenantId, params.anomaly_id, body, caller)
      return readerOf(caller).answer(find)
    },
  })
  addMuteRoutes(http, feedback)
}

function addMuteRoutes(http: FastifyInstance, feedback: FeedbackStore): void {
  serve(http, anomalyOperations.listMutes, {
    handle: async ({ caller, query }) => {
      const page = {
        limit: query.limit + 1,
        beforeId: decodeCursor(query.cursor, 1)?.[0] ?? null,
        detectorId: query.detector_id,
        withExpired: query.expired === 'true',
      }
      const pace = new Pace(() => http.turns.turnOf(caller.tenantId))
      const rows = await feedback.listMutes(caller.tenantId, page, pace)
      return {
        body: pageOfRows(
          rows,
          query.limit,
          (row) => [row.id],
          (row) => row,
        ),
      }
    },
  })

  serve(http, anomalyOperations.createMute, {
    parse: readMute,
    handle: async ({ caller, value }) => ({
      body: await feedback.createMute(caller.tenantId, value, caller.requester),
    }),
  })

  serve(http, anomalyOperations.deleteMute, {
    handle: async ({ caller, params }) => {
      await feedback.deleteMute(caller.tenantId, params.mute_id, caller.requester)
      return { body: undefined }
    },
  })
}
