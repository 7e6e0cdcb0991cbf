// The context of an anomaly, computed on request. Nothing of it is stored, so nothing of it has to be erased.
// It is read like all telemetry, so hidden and erased data is not in it.

import type { AnomalyContext } from '../../contract/detection/context.ts'
import type { Anomaly } from '../../contract/detection/detectors.ts'
import { formatInstant, nsPerMinute } from '../../contract/values/instant.ts'
import { AppError } from '../core/app-error.ts'
import { Pace } from '../core/turns/pace.ts'
import { readAttributeShares } from '../series/attribute-shares.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { formatQuantity } from './anomalies/format.ts'
import { deploysAround } from './anomaly-deploys.ts'
import type { DetectorDefinition } from './detectors/detector.ts'
import type { DetectionStore } from './detectors/store.ts'
import { nsOf } from './incidents/timed-anomalies.ts'
import { relatedOf } from './related.ts'
import { narrowestStep } from './runs/run-plan.ts'

const similarShown = 5
const similarMax = 500
/** A person waits for the response; contributors that take longer than this are left out. */
const limits = { maxSeconds: 3, maxMemoryBytes: 512 * 1024 * 1024 }
const nsPerHour = 60n * nsPerMinute
/** The first hours of a long incident show how it began. */
const longestNs = 6n * nsPerHour

export async function contextOf(
  store: DetectionStore,
  reader: TenantReader,
  anomaly: Anomaly,
): Promise<AnomalyContext> {
  const detector = await store.findDetector(reader.place.tenantId, anomaly.detector_id)
  const isSameMetric = detector?.definition.metric_key === anomaly.metric_key
  const scope = detector !== null && isSameMetric ? detector.definition.scope : {}
  const labels = { ...scope.attributes, ...(scope.service && { service: scope.service }), ...anomaly.group }
  return {
    similar: await similarTo(store, reader, anomaly),
    contributors: await contributorsTo(reader, anomaly, labels),
    links: linksOf(anomaly, labels, detector?.definition ?? null),
    related: await relatedOf(store, reader.place.tenantId, anomaly, new Pace(reader.share.turn)),
    deploys: await deploysAround(reader, anomaly),
  }
}

async function similarTo(
  store: DetectionStore,
  { place, share }: TenantReader,
  anomaly: Anomaly,
): Promise<AnomalyContext['similar']> {
  const filter = { detector_id: anomaly.detector_id, range_end: nsOf(anomaly.started_at) }
  const page = { limit: similarMax, filter, before: null, pace: new Pace(share.turn) }
  const earlier = await store.listAnomalies(place.tenantId, page)
  const key = JSON.stringify(anomaly.group)
  const same = earlier.filter(
    ({ group, metric_key }) => metric_key === anomaly.metric_key && JSON.stringify(group) === key,
  )
  const latest = same.slice(0, similarShown).map(({ id, reason, started_at }) => ({ id, reason, started_at }))
  return { count: same.length, latest }
}

async function contributorsTo(
  reader: TenantReader,
  anomaly: Anomaly,
  labels: Readonly<Record<string, string>>,
): Promise<AnomalyContext['contributors']> {
  const startNs = nsOf(anomaly.started_at)
  const lastNs = nsOf(anomaly.seen_until)
  const endNs = lastNs - startNs > longestNs ? startNs + longestNs : lastNs
  const spanNs = endNs - startNs > nsPerHour ? endNs - startNs : nsPerHour
  const beforeNs = startNs > spanNs ? startNs - spanNs : 0n
  const isLatency = anomaly.metric_key.startsWith('spans.latency_')
  const isSlow = isLatency && anomaly.upper !== null && (anomaly.value ?? 0) > anomaly.upper
  // A low value has no contributors: the events that are left do not show why there are few of
  // them, or why they are fast.
  if (anomaly.value === null || (isLatency && !isSlow)) return null
  const slowerThanMs = isSlow ? anomaly.upper : null
  try {
    const request = { metricKey: anomaly.metric_key, labels, slowerThanMs, startNs, endNs, beforeNs }
    const shares = await readAttributeShares(reader, request, limits)
    if (shares === null) return null
    const range = { startNs: beforeNs, endNs }
    const { gate, place } = reader
    const isPartial = anomaly.signals.some(
      (signal) => gate.unknownTime(place.tenantId, signal, range).length > 0,
    )
    const summary = summaryOf(anomaly.metric_key, shares, slowerThanMs)
    return { summary, values: [...shares.values], is_partial: isPartial }
  } catch (error) {
    if (error instanceof AppError && error.code === 'query_too_expensive') return null
    throw error
  }
}

function summaryOf(
  metricKey: string,
  { concerned, events }: { concerned: number; events: number },
  slowerThanMs: number | null,
): string {
  const noun = metricKey.startsWith('logs.') ? 'log record' : 'request'
  const were = `${concerned} of ${events} ${noun}${events === 1 ? '' : 's'}`
  if (slowerThanMs !== null) return `${were} took longer than ${formatQuantity(slowerThanMs, 'ms')}`
  if (metricKey === 'spans.error_ratio') return `${were} failed`
  if (metricKey === 'logs.error_count') return `${were} were errors`
  return `${events} ${noun}${events === 1 ? '' : 's'}`
}

function linksOf(
  anomaly: Anomaly,
  labels: Readonly<Record<string, string>>,
  definition: DetectorDefinition | null,
): AnomalyContext['links'] {
  const { service, ...attributes } = labels
  const step = definition === null ? 1 : narrowestStep(definition.window_minutes)
  const common = new URLSearchParams()
  if (service !== undefined) common.set('service', service)
  for (const [key, value] of Object.entries(attributes)) common.append('attribute', `${key}=${value}`)
  const around = 60n * BigInt(step) * nsPerMinute
  const [startNs, endNs] = [nsOf(anomaly.started_at), nsOf(anomaly.seen_until)]
  const series = new URLSearchParams(common)
  series.set('metric_key', anomaly.metric_key)
  series.set('range_start', formatInstant(startNs > around ? startNs - around : 0n))
  series.set('range_end', formatInstant(endNs + around))
  series.set('step_seconds', String(step * 60))
  const aggregation = definition?.scope.aggregation
  if (aggregation !== undefined && definition?.metric_key === anomaly.metric_key)
    series.set('aggregation', aggregation)
  const [signal] = anomaly.signals
  const isOfEvents = anomaly.signals.length === 1 && signal !== 'metrics'
  common.set('range_start', anomaly.started_at)
  common.set('range_end', anomaly.seen_until)
  if (anomaly.metric_key === 'spans.error_ratio') common.set('status', 'error')
  if (anomaly.metric_key === 'logs.error_count') common.set('severity', 'error')
  return {
    detector: `/anomalies/detectors/${anomaly.detector_id}`,
    series: `/telemetry/series?${series}`,
    events: isOfEvents ? `/telemetry/${signal === 'logs' ? 'logs' : 'spans'}?${common}` : null,
  }
}
