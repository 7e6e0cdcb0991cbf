// Finds the deploy that an anomaly began with, and the reason that names it. It is computed on request, from
// telemetry as it is visible then, and not stored: so an erasure of that telemetry leaves nothing of it. That
// a deploy came just before is a fact; whether it is the cause is for people to decide. So the reason says
// `since version 2.3.1`, not `because of`.

import type { Anomaly } from '../../contract/detection/detectors.ts'
import type { DetectorPreview } from '../../contract/detection/preview.ts'
import type { Deploy } from '../../contract/telemetry/deploys.ts'
import { formatInstant, type Ns, nsPerMinute } from '../../contract/values/instant.ts'
import { AppError } from '../core/app-error.ts'
import { partitionPoint } from '../core/partition-point.ts'
import { Pace } from '../core/turns/pace.ts'
import { type KnownDeploy, toDeploy } from '../deploys/deploys.ts'
import { type DeployWindow, readDeploys } from '../deploys/read-deploys.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import type { DetectorDefinition } from './detectors/detector.ts'
import type { DetectorSubject } from './detectors/detector-rows.ts'
import type { DetectionStore } from './detectors/store.ts'
import { nsOf } from './incidents/timed-anomalies.ts'
import type { BacktestResult } from './runs/backtest.ts'

/** A deploy that came at most this long before an anomaly is the one that it began with. */
const beforeNs = 30n * nsPerMinute
/** Its first bucket may have begun before the deploy. */
const slackNs = 15n * nsPerMinute
/** How far back the version before the first listed deploy is looked up. */
const lookbackNs = 120n * nsPerMinute
/** Times of a list that are read at once; if there are more, neighbours are joined. */
const windowsMax = 6
const nsPerHour = 60n * nsPerMinute
const aroundNs = 6n * nsPerHour
const shownMax = 20
const drawnMax = 100
/** A deviation that lasts this long is reported as a new level. */
const lastingNs = nsPerHour
/** A person waits; deploys that take longer than this are left out. */
const limits = { maxSeconds: 3, maxMemoryBytes: 512 * 1024 * 1024 }

/** An anomaly with the deploy that it began with, and its reason. */
type Told = Pick<Anomaly, 'group' | 'reason' | 'seen_until' | 'started_at' | 'value'>

/** What is needed of the detector of an anomaly. */
type Subject = Pick<DetectorSubject, 'methodKey' | 'service'>

interface Begun<T extends Told> {
  readonly anomaly: T
  readonly service: string
  readonly startedNs: Ns
  readonly isNewLevel: boolean
}

/** For the anomalies that began with a deploy of their service: the deploy, and the reason that names it. */
export async function deploysWith(
  store: DetectionStore,
  reader: TenantReader,
  anomalies: readonly Anomaly[],
): Promise<Map<string, Pick<Anomaly, 'reason'> & { readonly deploy: Deploy }>> {
  const found = await deploysOfBegun(reader, await withServices(store, reader, anomalies))
  return new Map([...found].map(([{ id }, told]) => [id, told]))
}

/** Adds to a preview the deploys that its anomalies began with, and those of its services in the range. */
export async function previewWithDeploys(
  reader: TenantReader,
  definition: DetectorDefinition,
  preview: BacktestResult,
): Promise<DetectorPreview> {
  const subject = { service: definition.scope.service, methodKey: definition.method_key }
  const found = await deploysOfBegun(
    reader,
    preview.anomalies.flatMap((anomaly) => begunOf(anomaly, subject) ?? []),
  )
  const services = preview.series.map(({ group }) => group.service || definition.scope.service || '')
  const known = [...new Set(services)].filter((service) => service !== '')
  const window = { startNs: nsOf(preview.range_start), endNs: nsOf(preview.range_end) }
  const deploys =
    known.length === 0 ? [] : await readAffordable(reader, { windows: [window], services: known })
  return {
    ...preview,
    anomalies: preview.anomalies.map((anomaly) => ({ ...anomaly, deploy: null, ...found.get(anomaly) })),
    deploys: deploys.slice(-drawnMax).map(toDeploy),
  }
}

async function deploysOfBegun<T extends Told>(
  reader: TenantReader,
  begun: readonly Begun<T>[],
): Promise<Map<T, { readonly reason: string; readonly deploy: Deploy }>> {
  if (begun.length === 0) return new Map()
  const windows = windowsOf(begun)
  const services = [...new Set(begun.map(({ service }) => service))]
  const deploys = await readAffordable(reader, { windows, services, lookbackNs })
  const byService = Map.groupBy(deploys, (deploy) => deploy.service)
  return new Map(
    begun.flatMap(({ anomaly, isNewLevel, service, startedNs }) => {
      const own = byService.get(service) ?? []
      const deploy = own[partitionPoint(own.length, (i) => (own[i]?.atNs ?? 0n) > startedNs + slackNs) - 1]
      if (deploy === undefined || deploy.atNs < startedNs - beforeNs) return []
      const reason = `${anomaly.reason}; ${sinceText(deploy, isNewLevel)}`
      return [[anomaly, { reason, deploy: toDeploy(deploy) }] as const]
    }),
  )
}

/** The deploys of all services around an anomaly, oldest first. */
export async function deploysAround(reader: TenantReader, anomaly: Anomaly): Promise<Deploy[]> {
  const [startedNs, seenUntilNs] = [nsOf(anomaly.started_at), nsOf(anomaly.seen_until)]
  const lastNs = seenUntilNs - startedNs > aroundNs ? startedNs + aroundNs : seenUntilNs
  const window = { startNs: startedNs > aroundNs ? startedNs - aroundNs : 0n, endNs: lastNs + slackNs }
  const deploys = await readAffordable(reader, { windows: [window] })
  const distance = ({ atNs }: KnownDeploy) => Math.abs(Number(atNs - startedNs))
  const closest = new Set(deploys.toSorted((a, b) => distance(a) - distance(b)).slice(0, shownMax))
  return deploys.filter((deploy) => closest.has(deploy)).map(toDeploy)
}

/**
 * Empty where the engine is too busy or reading them costs too much; the anomaly is then returned without
 * deploys.
 */
async function readAffordable(
  reader: TenantReader,
  request: Parameters<typeof readDeploys>[1],
): Promise<readonly KnownDeploy[]> {
  try {
    return (await readDeploys(reader, request, limits)).deploys
  } catch (error) {
    const isCost =
      error instanceof AppError && ['query_too_expensive', 'too_many_requests'].includes(error.code)
    if (isCost) return []
    throw error
  }
}

/** Those whose service is known, from their group or from the scope of their detector. */
async function withServices(
  store: DetectionStore,
  reader: TenantReader,
  anomalies: readonly Anomaly[],
): Promise<Begun<Anomaly>[]> {
  const ids = new Set(anomalies.map(({ detector_id }) => detector_id))
  const pace = new Pace(reader.share.turn)
  const subjects = await store.findSubjects(reader.place.tenantId, [...ids], pace)
  return anomalies.flatMap((anomaly) => {
    const subject = subjects.get(anomaly.detector_id)
    return begunOf(anomaly, subject?.metricKey === anomaly.metric_key ? subject : undefined) ?? []
  })
}

/** Null where its service is not known. */
function begunOf<T extends Told>(anomaly: T, subject: Subject | undefined): Begun<T> | null {
  const service = anomaly.group.service || subject?.service
  if (service === undefined || service === '') return null
  const startedNs = nsOf(anomaly.started_at)
  const isLong = nsOf(anomaly.seen_until) - startedNs >= lastingNs
  const isNewLevel = anomaly.value !== null && (isLong || subject?.methodKey === 'level_shift')
  return { anomaly, service, startedNs, isNewLevel }
}

/** Around the starts, in order of time; those that are closest to each other are joined. */
function windowsOf(begun: readonly Pick<Begun<Told>, 'startedNs'>[]): DeployWindow[] {
  const starts = begun.map(({ startedNs }) => startedNs).sort((a, b) => (a < b ? -1 : 1))
  const windows: DeployWindow[] = []
  for (const startedNs of starts) {
    const startNs = startedNs > beforeNs ? startedNs - beforeNs : 0n
    const endNs = startedNs + slackNs + 1n
    const last = windows.at(-1)
    if (last === undefined || startNs - last.endNs > lookbackNs) windows.push({ startNs, endNs })
    else windows[windows.length - 1] = { startNs: last.startNs, endNs }
  }
  while (windows.length > windowsMax) {
    const gaps = windows.slice(1).map(({ startNs }, i) => Number(startNs - (windows[i]?.endNs ?? 0n)))
    const closest = gaps.indexOf(Math.min(...gaps))
    const [one, next] = [windows[closest], windows[closest + 1]]
    if (one === undefined || next === undefined) break
    windows.splice(closest, 2, { startNs: one.startNs, endNs: next.endNs })
  }
  return windows
}

/** `since version 2.3.1 in staging, deployed 14:01 UTC`. */
function sinceText(
  { atNs, environment, previous_version, version }: KnownDeploy,
  isNewLevel: boolean,
): string {
  const where = environment === null ? '' : ` in ${environment}`
  const when = `${formatInstant(atNs).slice(11, 16)} UTC`
  const isNamed = version !== null && version !== previous_version
  const what = isNamed ? `version ${version}${where}, deployed ${when}` : `a deploy${where} at ${when}`
  return `${isNewLevel ? 'a new level ' : ''}since ${what}`
}
