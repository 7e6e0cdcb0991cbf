// Anomalies with their times as numbers and with the service that they are of, which is what relates them.

import type { Anomaly, DetectorScope } from '../../../contract/detection/detectors.ts'
import { type Ns, parseInstant } from '../../../contract/values/instant.ts'
import { idsMax } from '../anomalies/id-list.ts'
import type { DetectionStore } from '../detectors/store.ts'

export interface TimedAnomaly {
  readonly anomaly: Anomaly
  readonly startedNs: Ns
  readonly seenUntilNs: Ns
  /** From its group, or from the scope of its detector; null where neither has one. */
  readonly service: string | null
}

export async function withTimes(
  store: DetectionStore,
  tenantId: string,
  anomalies: readonly Anomaly[],
): Promise<TimedAnomaly[]> {
  const withoutService = anomalies.filter(({ group }) => group.service === undefined)
  const scopes = await scopesOf(store, tenantId, [
    ...new Set(withoutService.map(({ detector_id }) => detector_id)),
  ])
  return anomalies.map((anomaly) => {
    const scope = scopes.get(anomaly.detector_id)
    const ofScope = scope?.metricKey === anomaly.metric_key ? scope.scope.service : undefined
    return {
      anomaly,
      startedNs: nsOf(anomaly.started_at),
      seenUntilNs: nsOf(anomaly.seen_until),
      service: anomaly.group.service || ofScope || null,
    }
  })
}

async function scopesOf(store: DetectionStore, tenantId: string, ids: readonly string[]) {
  const scopes = new Map<string, { readonly metricKey: string; readonly scope: DetectorScope }>()
  for (let i = 0; i < ids.length; i += idsMax) {
    for (const [id, { definition }] of await store.findDetectors(tenantId, ids.slice(i, i + idsMax))) {
      scopes.set(id, { metricKey: definition.metric_key, scope: definition.scope })
    }
  }
  return scopes
}

/** Parses an instant that this program has written. */
export function nsOf(text: string): Ns {
  const read = parseInstant(text)
  if ('ns' in read) return read.ns
  throw new Error(`Not an instant: ${text}`)
}

export function earliest(one: Ns, ...others: readonly Ns[]): Ns {
  let first = one
  for (const other of others) if (other < first) first = other
  return first
}

export function latest(one: Ns, ...others: readonly Ns[]): Ns {
  let last = one
  for (const other of others) if (other > last) last = other
  return last
}
