// Anomalies with their times as numbers and with the service that they are of, which is what relates them.

import type { Anomaly } from '../../../contract/detection/detectors.ts'
import { type Ns, parseInstant } from '../../../contract/values/instant.ts'
import { mapInTurns, type Pace } from '../../core/turns/pace.ts'
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
  pace: Pace,
): Promise<TimedAnomaly[]> {
  const withoutService = anomalies.filter(({ group }) => group.service === undefined)
  const ids = new Set(withoutService.map(({ detector_id }) => detector_id))
  const subjects = await store.findSubjects(tenantId, [...ids], pace)
  return mapInTurns(anomalies, pace, (anomaly) => {
    const subject = subjects.get(anomaly.detector_id)
    const ofScope = subject?.metricKey === anomaly.metric_key ? subject.service : undefined
    return {
      anomaly,
      startedNs: nsOf(anomaly.started_at),
      seenUntilNs: nsOf(anomaly.seen_until),
      service: anomaly.group.service || ofScope || null,
    }
  })
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
