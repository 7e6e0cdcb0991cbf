// Detectors, and help with creating one. Readers may see them. A preview costs as much as many runs, so it is
// for those who may create a detector.

import { z } from 'zod'
import {
  CreateDetector,
  Detector,
  DetectorListQuery,
  DetectorParams,
  MetricChoice,
  PatchDetector,
} from '../detection/detectors.ts'
import { DetectionMethod } from '../detection/methods.ts'
import { DetectorPreview, PreviewDetector } from '../detection/preview.ts'
import { DetectorSuggestion, SuggestQuery } from '../detection/suggestion.ts'
import {
  createDetectorExample,
  detectorExample,
  detectorPreviewExample,
  methodsExample,
  metricChoicesExample,
  newDetectorExample,
  patchDetectorExample,
  patchedDetectorExample,
  previewDetectorExample,
  suggestionExample,
} from '../examples/detectors.ts'
import { jsonType, mergePatchType, operation } from '../operation.ts'
import { editors, readers } from '../role.ts'
import { pageOf } from '../values/fields.ts'

const IfMatch = z.object({
  'if-match': z.string().optional().describe('The ETag you read; 412 where it has changed since.'),
})

/** The schedule runs a detector at most once a minute; this limit is for a person who waits for a result. */
const runRate = { perMinute: 60, burst: 30 }

/** Each preview replays up to thousands of runs. People change a parameter and try again. */
const previewRate = { perMinute: 20, burst: 10 }

/** Each suggestion reads a week of minutes. */
const suggestRate = { perMinute: 30, burst: 15 }

/** Each is an entry in the audit log, which nothing removes. A script can make as many as there may be. */
const changeRate = { perMinute: 60, burst: 1000 }

export const detectorOperations = {
  list: operation({
    id: 'getAnomaliesDetectors',
    method: 'GET',
    path: '/anomalies/detectors',
    access: readers,
    tag: 'Detection',
    summary: 'Detectors of your organisation, newest first',
    query: DetectorListQuery,
    results: { 200: { body: pageOf(Detector), example: { items: [detectorExample], next_cursor: null } } },
  }),
  get: operation({
    id: 'getAnomaliesDetectorsByDetectorId',
    method: 'GET',
    path: '/anomalies/detectors/:detector_id',
    access: readers,
    tag: 'Detection',
    summary: 'A detector',
    params: DetectorParams,
    results: { 200: { body: Detector, headers: ['etag'], example: detectorExample } },
    refusals: ['not_found'],
  }),
  create: operation({
    id: 'postAnomaliesDetectors',
    method: 'POST',
    path: '/anomalies/detectors',
    access: editors,
    tag: 'Detection',
    summary: 'Create a detector; it is run at once and then on its schedule',
    body: CreateDetector,
    bodyExample: createDetectorExample,
    results: { 201: { body: Detector, headers: ['etag', 'location'], example: newDetectorExample } },
    rate: changeRate,
  }),
  patch: operation({
    id: 'patchAnomaliesDetectorsByDetectorId',
    method: 'PATCH',
    path: '/anomalies/detectors/:detector_id',
    access: editors,
    tag: 'Detection',
    summary: 'Change a detector in part',
    params: DetectorParams,
    headers: IfMatch,
    body: PatchDetector,
    bodyTypes: [jsonType, mergePatchType],
    bodyExample: patchDetectorExample,
    results: { 200: { body: Detector, headers: ['etag'], example: patchedDetectorExample } },
    refusals: ['not_found', 'system_detector', 'precondition_failed'],
    rate: changeRate,
  }),
  delete: operation({
    id: 'deleteAnomaliesDetectorsByDetectorId',
    method: 'DELETE',
    path: '/anomalies/detectors/:detector_id',
    access: editors,
    tag: 'Detection',
    summary: 'Delete a detector and its anomalies; 409 while a legal hold keeps one of them',
    params: DetectorParams,
    headers: IfMatch,
    results: { 204: { body: z.undefined(), meaning: 'Deleted.' } },
    refusals: ['not_found', 'system_detector', 'held', 'precondition_failed'],
    rate: changeRate,
  }),
  run: operation({
    id: 'postAnomaliesDetectorsByDetectorIdRun',
    method: 'POST',
    path: '/anomalies/detectors/:detector_id/run',
    access: editors,
    tag: 'Detection',
    summary: 'Run a detector now, also one that is not enabled',
    params: DetectorParams,
    results: { 200: { body: Detector, headers: ['etag'], example: detectorExample } },
    refusals: ['not_found', 'detector_running', 'query_too_expensive', 'erasing'],
    rate: runRate,
  }),
  preview: operation({
    id: 'postAnomaliesDetectorsPreview',
    method: 'POST',
    path: '/anomalies/detectors/preview',
    access: editors,
    tag: 'Detection',
    summary: 'What a detector would have done over a past range; nothing is stored',
    body: PreviewDetector,
    bodyExample: previewDetectorExample,
    results: { 200: { body: DetectorPreview, example: detectorPreviewExample } },
    refusals: ['query_too_expensive', 'erasing'],
    rate: previewRate,
  }),
  suggest: operation({
    id: 'getAnomaliesSuggest',
    method: 'GET',
    path: '/anomalies/suggest',
    access: editors,
    tag: 'Detection',
    summary: 'Suggest window, schedule and method for a metric',
    query: SuggestQuery,
    results: { 200: { body: DetectorSuggestion, example: suggestionExample } },
    refusals: ['query_too_expensive', 'erasing'],
    rate: suggestRate,
  }),
  listMethods: operation({
    id: 'getAnomaliesMethods',
    method: 'GET',
    path: '/anomalies/methods',
    access: readers,
    tag: 'Detection',
    summary: 'Detection methods and the JSON Schema of their params',
    results: {
      200: { body: pageOf(DetectionMethod), example: { items: methodsExample, next_cursor: null } },
    },
  }),
  listMetrics: operation({
    id: 'getAnomaliesMetrics',
    method: 'GET',
    path: '/anomalies/metrics',
    access: readers,
    tag: 'Detection',
    summary:
      'What a detector can watch: the built-in metrics, then those that your organisation has sent recently',
    results: {
      200: { body: pageOf(MetricChoice), example: { items: metricChoicesExample, next_cursor: null } },
    },
    refusals: ['query_too_expensive', 'erasing'],
  }),
} as const
