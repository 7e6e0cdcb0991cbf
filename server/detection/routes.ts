// Detectors and anomalies over HTTP. A definition is checked against the method's own parameters together
// with the body's schema, so that one answer names every problem. An id of another organisation answers byte
// for byte like one that doesn't exist.

import type { FastifyInstance } from 'fastify'
import { type Anomaly, builtInMetrics, type Detector } from '../../contract/detection/detectors.ts'
import { describeMethods } from '../../contract/detection/methods.ts'
import { mergePatchType } from '../../contract/operation.ts'
import { anomalyOperations } from '../../contract/operations/anomalies.ts'
import { detectorOperations } from '../../contract/operations/detectors.ts'
import { instantOf, type Moment, parseInstant } from '../../contract/values/instant.ts'
import { AppError } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import { type Clock, instantText } from '../core/clock.ts'
import { decodeCursor, invalidCursor, pageOfRows } from '../core/input/cursor.ts'
import { Pace } from '../core/turns/pace.ts'
import { type Answer, serve } from '../http/serve.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { deploysWith } from './anomaly-deploys.ts'
import { contextOf } from './context.ts'
import type { AnomalyPage } from './detectors/anomaly-list.ts'
import { etagOf, readCreation, type StoredDetector, toDetector } from './detectors/detector.ts'
import { patchDetector, readPatchOf } from './detectors/patch.ts'
import type { DetectionStore } from './detectors/store.ts'
import type { Incidents } from './incidents/incidents.ts'
import { relatedIdsOf } from './related.ts'
import type { DetectorRunner } from './runs/runner.ts'

interface DetectionRoutesOptions {
  readonly store: DetectionStore
  readonly runner: DetectorRunner
  readonly incidents: Incidents
  /** Names of the metrics an organisation has sent lately. */
  readonly metricKeysOf: (caller: Caller) => Promise<readonly string[]>
  readonly readerOf: (caller: Caller) => TenantReader
  readonly clock: Clock
}

export function addDetectionRoutes(http: FastifyInstance, options: DetectionRoutesOptions): void {
  addReadingRoutes(http, options)
  addEditingRoutes(http, options.store)
  addRunRoute(http, options)
  addCatalogueRoutes(http, options)
  addAnomalyRoutes(http, options)
  addVersionsRoute(http, options)
}

function addReadingRoutes(http: FastifyInstance, { readerOf, store }: DetectionRoutesOptions): void {
  serve(http, detectorOperations.list, {
    handle: ({ caller, query }) => {
      const beforeId = decodeCursor(query.cursor, 1)?.[0] ?? null
      const reader = readerOf(caller)
      return reader.answer(async () => {
        const page = { limit: query.limit + 1, beforeId }
        const rows = await store.listDetectors(caller.tenantId, page, new Pace(reader.share.turn))
        return pageOfRows(rows, query.limit, (row) => [row.id], toDetector)
      })
    },
  })

  serve(http, detectorOperations.get, {
    handle: ({ caller, params }) => readDetectorAnswer(store, readerOf(caller), params.detector_id),
  })
}

/** What a run has said of the detector is hidden with the telemetry it was said of. */
async function readDetectorAnswer(
  store: DetectionStore,
  reader: TenantReader,
  id: string,
): Promise<Answer<Detector>> {
  const { body: stored, requireCurrent } = await reader.answer(() =>
    store.findDetector(reader.place.tenantId, id),
  )
  return { ...detectorAnswer(stored), requireCurrent }
}

function addEditingRoutes(http: FastifyInstance, store: DetectionStore): void {
  serve(http, detectorOperations.create, {
    parse: readCreation,
    handle: async ({ caller, value }) => {
      const created = await store.createDetector(caller.tenantId, value, caller.requester)
      const answer = detectorAnswer(created)
      return { ...answer, headers: { ...answer.headers, location: `/anomalies/detectors/${created.id}` } }
    },
  })

  serve(http, detectorOperations.patch, {
    parse: async ({ caller, mediaType, params, ...sent }) => {
      if (params === undefined) return { problems: [] }
      const target = { tenantId: caller.tenantId, id: params.detector_id }
      return readPatchOf(store, target, sent, mediaType === mergePatchType)
    },
    handle: async ({ body, caller, headers, mediaType, params, value }) => {
      const target = { tenantId: caller.tenantId, id: params.detector_id }
      const isMerge = mediaType === mergePatchType
      const patch = { body, isMerge, ifMatch: headers['if-match'], actor: caller.requester }
      return detectorAnswer(await patchDetector(store, target, patch, value))
    },
  })

  serve(http, detectorOperations.delete, {
    handle: async ({ caller, params, headers }) => {
      await store.deleteDetector(caller.tenantId, params.detector_id, headers['if-match'], caller.requester)
      return { body: undefined }
    },
  })
}

function addRunRoute(http: FastifyInstance, { readerOf, runner, store }: DetectionRoutesOptions): void {
  serve(http, detectorOperations.run, {
    handle: async ({ caller, params }) => {
      await runner.run(caller, params.detector_id)
      return readDetectorAnswer(store, readerOf(caller), params.detector_id)
    },
  })
}

function addCatalogueRoutes(http: FastifyInstance, { metricKeysOf, readerOf }: DetectionRoutesOptions): void {
  serve(http, detectorOperations.listMethods, {
    handle: async () => ({ body: { items: describeMethods(), next_cursor: null } }),
  })

  serve(http, detectorOperations.listMetrics, {
    handle: ({ caller }) =>
      readerOf(caller).answer(async () => {
        const builtIn = builtInMetrics.map((metric) => ({ ...metric, is_built_in: true }))
        const own = (await metricKeysOf(caller)).map((metric_key) => ({
          metric_key,
          description: '',
          is_built_in: false,
        }))
        return { items: [...builtIn, ...own], next_cursor: null }
      }),
  })
}

function addAnomalyRoutes(http: FastifyInstance, options: DetectionRoutesOptions): void {
  const { clock, incidents, readerOf, store } = options
  serve(http, anomalyOperations.list, {
    handle: async ({ caller, query }) => {
      const { cursor, limit, range_start, range_end, ...own } = query
      const nowNs = clock.nowNs()
      const instant = (moment: Moment | undefined) =>
        moment === undefined ? undefined : instantOf(moment, nowNs)
      const filter = { ...own, range_start: instant(range_start), range_end: instant(range_end) }
      const positionOf = (row: Anomaly) => [row.started_at, row.id]
      const reader = readerOf(caller)
      const pace = new Pace(reader.share.turn)
      const page = { limit: limit + 1, filter, before: readPosition(cursor), pace }
      return reader.answer(async () => {
        const rows = await store.listAnomalies(caller.tenantId, page)
        const shown = rows.slice(0, limit)
        const related = await relatedIdsOf(store, caller.tenantId, shown, pace)
        const deploys = await deploysWith(store, reader, shown)
        const incidentIds = await incidents.idsOf(reader, shown, nowNs)
        const listed = (row: Anomaly) => ({
          ...row,
          ...deploys.get(row.id),
          deploy: deploys.get(row.id)?.deploy ?? null,
          related_ids: related.get(row.id) ?? [],
          incident_id: incidentIds.get(row.id) ?? null,
        })
        return pageOfRows(rows, limit, positionOf, listed)
      })
    },
  })

  serve(http, anomalyOperations.get, {
    handle: async ({ caller, params }) => {
      const [reader, nowNs] = [readerOf(caller), clock.nowNs()]
      return reader.answer(async () => {
        const anomaly = await store.findAnomaly(caller.tenantId, params.anomaly_id)
        if (anomaly === null) throw new AppError('not_found')
        const context = await contextOf(store, reader, anomaly)
        const deploy = (await deploysWith(store, reader, [anomaly])).get(anomaly.id)
        const related_ids = context.related.anomalies.map(({ id }) => id)
        const incident_id = (await incidents.idsOf(reader, [anomaly], nowNs)).get(anomaly.id) ?? null
        const shown = { ...anomaly, ...deploy, deploy: deploy?.deploy ?? null, related_ids, incident_id }
        return { ...shown, context }
      })
    },
  })
}

function addVersionsRoute(http: FastifyInstance, { readerOf, store }: DetectionRoutesOptions): void {
  serve(http, anomalyOperations.listVersions, {
    handle: ({ caller, params }) =>
      readerOf(caller).answer(async () => {
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
        return { items, next_cursor: null }
      }),
  })
}

function detectorAnswer(stored: StoredDetector | null): Answer<Detector> & { body: Detector } {
  if (stored === null) throw new AppError('not_found')
  return { body: toDetector(stored), headers: { etag: etagOf(stored.revision) } }
}

function readPosition(cursor: string | undefined): AnomalyPage['before'] {
  const position = decodeCursor(cursor, 2)
  if (position === null) return null
  const started = parseInstant(position[0] ?? '')
  if ('ns' in started) return { startedNs: started.ns, id: position[1] ?? '' }
  throw invalidCursor(cursor)
}
