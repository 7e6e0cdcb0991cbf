// Feedback and mutes over HTTP: what people say of anomalies, and what is not to alarm for a while.

import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { pageOf } from '../../contract/common.ts'
import { Anomaly, AnomalyParams } from '../../contract/detection.ts'
import {
  CreateMute,
  GiveFeedback,
  Mute,
  MuteListQuery,
  MuteParams,
} from '../../contract/detection-feedback.ts'
import type { Role } from '../../contract/tenancy.ts'
import { AppError } from '../core/app-error.ts'
import { decodeCursor, pageOfRows } from '../core/cursor.ts'
import { route } from '../http/route.ts'
import type { FeedbackStore } from './anomalies/feedback-store.ts'
import { muteProblems } from './anomalies/mute.ts'
import type { DetectionStore } from './detectors/store.ts'

const readers: readonly Role[] = ['owner', 'admin', 'member', 'viewer']
const editors: readonly Role[] = ['owner', 'admin', 'member']
const tag = 'Detection'

export function addFeedbackRoutes(http: FastifyInstance, store: DetectionStore): void {
  const { feedback } = store
  route(http, {
    method: 'POST',
    url: '/anomalies/:anomaly_id/feedback',
    access: editors,
    tag,
    summary: 'Say that an anomaly was none, or was real; the next run of its detector goes by it',
    params: AnomalyParams,
    body: GiveFeedback,
    result: Anomaly,
    refusals: [404, 409],
    handle: async ({ body, caller, params }) => {
      const find = async () => {
        const anomaly = await store.findAnomaly(caller.tenantId, params.anomaly_id)
        if (anomaly === null) throw new AppError('not_found')
        return anomaly
      }
      await find()
      await feedback.giveFeedback(caller.tenantId, params.anomaly_id, body, caller.requester)
      return { body: await find() }
    },
  })
  addMuteRoutes(http, feedback)
}

function addMuteRoutes(http: FastifyInstance, feedback: FeedbackStore): void {
  route(http, {
    method: 'GET',
    url: '/anomalies/mutes',
    access: readers,
    tag,
    summary: 'Mutes of your organisation, newest first',
    query: MuteListQuery,
    result: pageOf(Mute),
    handle: async ({ caller, query }) => {
      const rows = await feedback.listMutes(caller.tenantId, {
        limit: query.limit + 1,
        beforeId: decodeCursor(query.cursor, 1)?.[0] ?? null,
        detectorId: query.detector_id,
        withExpired: query.expired === 'true',
      })
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

  route(http, {
    method: 'POST',
    url: '/anomalies/mutes',
    access: editors,
    tag,
    summary: 'Mute detectors or series: what happens is recorded but not alarmed',
    body: CreateMute,
    check: muteProblems,
    status: 201,
    result: Mute,
    handle: async ({ body, caller }) => {
      return { body: await feedback.createMute(caller.tenantId, body, caller.requester) }
    },
  })

  route(http, {
    method: 'DELETE',
    url: '/anomalies/mutes/:mute_id',
    access: editors,
    tag,
    summary: 'Delete a mute; what it covered and still goes on alarms with the next run',
    params: MuteParams,
    status: 204,
    result: z.undefined().describe('Deleted.'),
    refusals: [404],
    handle: async ({ caller, params }) => {
      await feedback.deleteMute(caller.tenantId, params.mute_id, caller.requester)
      return { body: undefined }
    },
  })
}
