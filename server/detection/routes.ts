// Detectors and anomalies over HTTP. A definition is checked against the method's own parameters together with the
// body's schema, so that one answer names every problem. An id of another organisation answers byte for byte like
// one that doesn't exist.

import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { pageOf } from '../../contract/common.ts'
import {
  type Anomaly,
  AnomalyListQuery,
  AnomalyParams,
  AnomalyVersion,
  builtInMetrics,
  CreateDetector,
  Detector,
  DetectorListQuery,
  DetectorParams,
  MetricChoice,
  PatchDetector,
} from '../../contract/detection.ts'
import { AnomalyWithContext, ListedAnomaly } from '../../contract/detection-context.ts'
import { DetectionMethod, describeMethods } from '../../contract/detection-methods.ts'
import type { ValidationProblem } from '../../contract/errors.ts'
import { instantOf, type Moment, parseInstant } from '../../contract/instant.ts'
import type { Role } from '../../contract/tenancy.ts'
import { AppError, InvalidInput } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import { type Clock, instantText } from '../core/clock.ts'
import { decodeCursor, invalidCursor, pageOfRows } from '../core/cursor.ts'
import { type Answer, mediaTypeOf, route } from '../http/route.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { contextOf } from './context.ts'
import {
  createProblems,
  etagOf,
  patchProblems,
  readDraft,
  type StoredDetector,
  toDetector,
} from './detectors/detector.ts'
import type { AnomalyPage, DetectionStore } from './detectors/store.ts'
import { relatedIdsOf } from './related.ts'
import type { DetectorRunner } from './runs/runner.ts'

interface DetectionRoutesOptions {
  readonly store: DetectionStore
  readonly runner: DetectorRunner
  /** Names of the metrics an organisation has sent lately. */
  readonly metricKeysOf: (caller: Caller) => Promise<readonly string[]>
  readonly readerOf: (caller: Caller) => TenantReader
  readonly clock: Clock
}

const readers: readonly Role[] = ['owner', 'admin', 'member', 'viewer']
const editors: readonly Role[] = ['owner', 'admin', 'member']
const tag = 'Detection'
const mergeType = 'application/merge-patch+json'
const IfMatch = z.object({
  'if-match': z.string().optional().describe('The ETag you read; 412 where it has changed since.'),
})

/** The schedule runs detectors at most once a minute each; this is for a person who waits for a result. */
const runRate = { perMinute: 60, burst: 30 }

export function addDetectionRoutes(http: FastifyInstance, options: DetectionRoutesOptions): void {
  addReadingRoutes(http, options.store)
  addEditingRoutes(http, options.store)
  addRunRoute(http, options)
  addCatalogueRoutes(http, options)
  addAnomalyRoutes(http, options)
  addVersionsRoute(http, options)
}

function addReadingRoutes(http: FastifyInstance, store: DetectionStore): void {
  route(http, {
    method: 'GET',
    url: '/anomalies/detectors',
    access: readers,
    tag,
    summary: 'Detectors of your organisation, newest first',
    query: DetectorListQuery,
    result: pageOf(Detector),
    handle: async ({ caller, query }) => {
      const beforeId = decodeCursor(query.cursor, 1)?.[0] ?? null
      const rows = await store.listDetectors(caller.tenantId, { limit: query.limit + 1, beforeId })
      return { body: pageOfRows(rows, query.limit, (row) => [row.id], toDetector) }
    },
  })

  route(http, {
    method: 'GET',
    url: '/anomalies/detectors/:detector_id',
    access: readers,
    tag,
    summary: 'A detector',
    params: DetectorParams,
    result: Detector,
    refusals: [404],
    handle: async ({ caller, params }) =>
      detectorAnswer(await store.findDetector(caller.tenantId, params.detector_id)),
  })
}

function addEditingRoutes(http: FastifyInstance, store: DetectionStore): void {
  route(http, {
    method: 'POST',
    url: '/anomalies/detectors',
    access: editors,
    tag,
    summary: 'Create a detector; it is run at once and then on its schedule',
    body: CreateDetector,
    check: createProblems,
    status: 201,
    result: Detector,
    handle: async ({ caller, body }) => {
      const read = readDraft(body)
      if ('problems' in read) throw new InvalidInput(read.problems)
      const created = await store.createDetector(caller.tenantId, read.definition, caller.requester)
      const answer = detectorAnswer(created)
      return { ...answer, headers: { ...answer.headers, location: `/anomalies/detectors/${created.id}` } }
    },
  })

  route(http, {
    method: 'PATCH',
    url: '/anomalies/detectors/:detector_id',
    access: editors,
    tag,
    summary: 'Change a detector in part',
    params: DetectorParams,
    body: PatchDetector,
    headers: IfMatch,
    bodyTypes: ['application/json', mergeType],
    check: (body, caller, request) => problemsOfPatch(store, body, caller, request),
    result: Detector,
    refusals: [404, 409, 412, 415],
    handle: async ({ caller, params, body, headers, mediaType }) => {
      const patch = { fields: body, isMerge: mediaType === mergeType, ifMatch: headers['if-match'] }
      return detectorAnswer(
        await store.patchDetector(caller.tenantId, params.detector_id, patch, caller.requester),
      )
    },
  })

  route(http, {
    method: 'DELETE',
    url: '/anomalies/detectors/:detector_id',
    access: editors,
    tag,
    summary: 'Delete a detector and its anomalies; 409 while a legal hold keeps one of them',
    headers: IfMatch,
    params: DetectorParams,
    status: 204,
    result: z.undefined().describe('Deleted.'),
    refusals: [404, 409, 412],
    handle: async ({ caller, params, headers }) => {
      await store.deleteDetector(caller.tenantId, params.detector_id, headers['if-match'], caller.requester)
      return { body: undefined }
    },
  })
}

function addRunRoute(http: FastifyInstance, { runner, store }: DetectionRoutesOptions): void {
  route(http, {
    method: 'POST',
    url: '/anomalies/detectors/:detector_id/run',
    access: editors,
    tag,
    summary: 'Run a detector now, also one that is not enabled',
    rate: runRate,
    params: DetectorParams,
    result: Detector,
    refusals: [404, 409],
    handle: async ({ caller, params }) => {
      await runner.run(caller, params.detector_id)
      return detectorAnswer(await store.findDetector(caller.tenantId, params.detector_id))
    },
  })
}

function addCatalogueRoutes(http: FastifyInstance, { metricKeysOf }: DetectionRoutesOptions): void {
  route(http, {
    method: 'GET',
    url: '/anomalies/methods',
    access: readers,
    tag,
    summary: 'Detection methods and the JSON Schema of their params',
    result: pageOf(DetectionMethod),
    handle: async () => ({ body: { items: describeMethods(), next_cursor: null } }),
  })

  route(http, {
    method: 'GET',
    url: '/anomalies/metrics',
    access: readers,
    tag,
    summary: 'What a detector can watch: the built-in metrics, then those your organisation has sent lately',
    result: pageOf(MetricChoice),
    handle: async ({ caller }) => {
      const builtIn = builtInMetrics.map((metric) => ({ ...metric, is_built_in: true }))
      const own = (await metricKeysOf(caller)).map((metric_key) => ({
        metric_key,
        description: '',
        is_built_in: false,
      }))
      return { body: { items: [...builtIn, ...own], next_cursor: null } }
    },
  })
}

function addAnomalyRoutes(http: FastifyInstance, { clock, readerOf, store }: DetectionRoutesOptions): void {
  route(http, {
    method: 'GET',
    url: '/anomalies',
    access: readers,
    tag,
    summary: 'Anomalies of your organisation, by start, latest first',
    query: AnomalyListQuery,
    result: pageOf(ListedAnomaly),
    handle: async ({ caller, query }) => {
      const { cursor, limit, range_start, range_end, ...own } = query
      const nowNs = clock.nowNs()
      const instant = (moment: Moment | undefined) =>
        moment === undefined ? undefined : instantOf(moment, nowNs)
      const filter = { ...own, range_start: instant(range_start), range_end: instant(range_end) }
      const rows = await store.listAnomalies(caller.tenantId, {
        limit: limit + 1,
        filter,
        before: readPosition(cursor),
      })
      const positionOf = (row: Anomaly) => [row.started_at, row.id]
      const related = await relatedIdsOf(store, caller.tenantId, rows.slice(0, limit))
      const listed = (row: Anomaly) => ({ ...row, related_ids: related.get(row.id) ?? [] })
      return { body: pageOfRows(rows, limit, positionOf, listed) }
    },
  })

  route(http, {
    method: 'GET',
    url: '/anomalies/:anomaly_id',
    access: readers,
    tag,
    summary: 'An anomaly, and what stands around it',
    params: AnomalyParams,
    result: AnomalyWithContext,
    refusals: [404],
    handle: async ({ caller, params }) => {
      const anomaly = await store.findAnomaly(caller.tenantId, params.anomaly_id)
      if (anomaly === null) throw new AppError('not_found')
      const context = await contextOf(store, readerOf(caller), anomaly)
      return { body: { ...anomaly, related_ids: context.related.anomalies.map(({ id }) => id), context } }
    },
  })
}

function addVersionsRoute(http: FastifyInstance, { store }: DetectionRoutesOptions): void {
  route(http, {
    method: 'GET',
    url: '/anomalies/:anomaly_id/versions',
    access: readers,
    tag,
    summary: 'What an anomaly that a legal hold keeps said before it was changed, oldest first',
    params: AnomalyParams,
    result: pageOf(AnomalyVersion),
    refusals: [404],
    handle: async ({ caller, params }) => {
      if ((await store.findAnomaly(caller.tenantId, params.anomaly_id)) === null) {
        throw new AppError('not_found')
      }
      const versions = await store.listVersions(caller.tenantId, params.anomaly_id)
      const items = versions.map(({ anomaly, heldBy, replacedAtMs, replacedBy, version }) => ({
        version,
        replaced_at: instantText(replacedAtMs),
        replaced_by: replacedBy,
        held_by: [...heldBy],
        anomaly,
      }))
      return { body: { items, next_cursor: null } }
    },
  })
}

function detectorAnswer(stored: StoredDetector | null): Answer<Detector> & { body: Detector } {
  if (stored === null) throw new AppError('not_found')
  return { body: toDetector(stored), headers: { etag: etagOf(stored.revision) } }
}

/** For an id the organisation doesn't have there is nothing to compare with; the handler answers 404. */
async function problemsOfPatch(
  store: DetectionStore,
  body: unknown,
  caller: Caller,
  request: FastifyRequest,
): Promise<ValidationProblem[]> {
  const params = DetectorParams.safeParse(request.params)
  if (!params.success) return []
  const stored = await store.findDetector(caller.tenantId, params.data.detector_id)
  const isMerge = mediaTypeOf(request) === mergeType
  return stored === null ? [] : patchProblems(stored, body, isMerge)
}

function readPosition(cursor: string | undefined): AnomalyPage['before'] {
  const position = decodeCursor(cursor, 2)
  if (position === null) return null
  const started = parseInstant(position[0] ?? '')
  if ('ns' in started) return { startedNs: started.ns, id: position[1] ?? '' }
  throw invalidCursor(cursor)
}
