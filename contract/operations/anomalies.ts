// Anomalies, feedback on them, and mutes.

import { z } from 'zod'
import { AnomalyWithContext, ListedAnomaly } from '../detection/context.ts'
import { Anomaly, AnomalyListQuery, AnomalyParams, AnomalyVersion } from '../detection/detectors.ts'
import { CreateMute, GiveFeedback, Mute, MuteListQuery, MuteParams } from '../detection/feedback.ts'
import {
  anomalyVersionExample,
  anomalyWithContextExample,
  createMuteExample,
  giveFeedbackExample,
  judgedAnomalyExample,
  listedAnomalyExample,
  muteExample,
} from '../examples/anomalies.ts'
import { operation } from '../operation.ts'
import { editors, readers } from '../role.ts'
import { pageOf } from '../values/fields.ts'

/** Each is an entry in the audit log, which nothing removes. A person needs seconds for one. */
const changeRate = { perMinute: 60, burst: 300 }

export const anomalyOperations = {
  list: operation({
    id: 'getAnomalies',
    method: 'GET',
    path: '/anomalies',
    access: readers,
    tag: 'Detection',
    summary: 'Anomalies of your organisation, latest start first',
    query: AnomalyListQuery,
    results: {
      200: { body: pageOf(ListedAnomaly), example: { items: [listedAnomalyExample], next_cursor: null } },
    },
    refusals: ['erasing'],
  }),
  get: operation({
    id: 'getAnomaliesByAnomalyId',
    method: 'GET',
    path: '/anomalies/:anomaly_id',
    access: readers,
    tag: 'Detection',
    summary: 'An anomaly and its context',
    params: AnomalyParams,
    results: { 200: { body: AnomalyWithContext, example: anomalyWithContextExample } },
    refusals: ['not_found', 'erasing'],
  }),
  listVersions: operation({
    id: 'getAnomaliesByAnomalyIdVersions',
    method: 'GET',
    path: '/anomalies/:anomaly_id/versions',
    access: readers,
    tag: 'Detection',
    summary: 'Earlier versions of an anomaly that a legal hold keeps, oldest first',
    params: AnomalyParams,
    results: {
      200: { body: pageOf(AnomalyVersion), example: { items: [anomalyVersionExample], next_cursor: null } },
    },
    refusals: ['not_found', 'erasing'],
  }),
  giveFeedback: operation({
    id: 'postAnomaliesByAnomalyIdFeedback',
    method: 'POST',
    path: '/anomalies/:anomaly_id/feedback',
    access: editors,
    tag: 'Detection',
    summary: 'Say that an anomaly was none, or was real; it affects the next run of its detector',
    params: AnomalyParams,
    body: GiveFeedback,
    bodyExample: giveFeedbackExample,
    results: { 200: { body: Anomaly, example: judgedAnomalyExample } },
    refusals: ['not_found', 'held', 'erasing'],
    rate: changeRate,
  }),
  listMutes: operation({
    id: 'getAnomaliesMutes',
    method: 'GET',
    path: '/anomalies/mutes',
    access: readers,
    tag: 'Detection',
    summary: 'Mutes of your organisation, newest first',
    query: MuteListQuery,
    results: { 200: { body: pageOf(Mute), example: { items: [muteExample], next_cursor: null } } },
  }),
  createMute: operation({
    id: 'postAnomaliesMutes',
    method: 'POST',
    path: '/anomalies/mutes',
    access: editors,
    tag: 'Detection',
    summary: 'Mute detectors or series: anomalies are recorded but do not alarm',
    body: CreateMute,
    bodyExample: createMuteExample,
    results: { 201: { body: Mute, example: muteExample } },
    rate: changeRate,
  }),
  deleteMute: operation({
    id: 'deleteAnomaliesMutesByMuteId',
    method: 'DELETE',
    path: '/anomalies/mutes/:mute_id',
    access: editors,
    tag: 'Detection',
    summary: 'Delete a mute; anomalies that it covered and that are still open alarm at the next run',
    params: MuteParams,
    results: { 204: { body: z.undefined(), meaning: 'Deleted.' } },
    refusals: ['not_found'],
    rate: changeRate,
  }),
} as const
