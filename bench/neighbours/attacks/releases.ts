// The attack on incidents: what belongs together is computed from all pairs of anomalies and the deploys
// before them, each time somebody reads.

import { encodeProto } from '../../../tests/otlp/otlp-messages.ts'
import type { Attack, Attacker } from '../attack.ts'
import { gaugeBody, nowMs, protobuf } from '../rows.ts'
import { alarmingAbove500 } from './detection.ts'

const minuteMs = 60_000
const metric = 'attacker.released'
/** As many versions of a service as count as deploys, and as many series as a detector evaluates. */
const versions = 200
const routes = 50
const detectorsOfEach = 10
/** Everything begins this long ago, so that the deploys around it are in the past and stay in memory. */
const sinceMinutes = 70

/**
 * Both services were deployed within the hour before, but not within a quarter of an hour of each other: so
 * every deploy of one is compared with those of the other, in vain.
 */
const services = [
  { service: 'front', deployedMinutes: 55 },
  { service: 'back', deployedMinutes: 30 },
]

/** One version half an hour before, and then one a second, each seen in two minutes. */
function versionsBody(service: string, deployedMs: number): Buffer {
  const resourceMetrics = Array.from({ length: versions }, (_, at) => {
    const fromMs = at === 0 ? deployedMs - 30 * minuteMs : deployedMs + at * 1000
    const dataPoints = [fromMs, fromMs + 70_000].map((ms) => ({
      timeUnixNano: String(BigInt(Math.round(ms)) * 1_000_000n),
      asDouble: 1,
    }))
    const attributes = Object.entries({ 'service.name': service, 'service.version': `v${at}` })
    return {
      resource: { attributes: attributes.map(([key, stringValue]) => ({ key, value: { stringValue } })) },
      scopeMetrics: [{ metrics: [{ name: 'attacker.version', gauge: { dataPoints } }] }],
    }
  })
  return encodeProto('metrics', { resourceMetrics })
}

async function send(attacker: Attacker, body: Buffer): Promise<void> {
  await attacker.call('POST', '/v1/metrics', { role: 'ingest', body, headers: protobuf })
}

/** A gauge that is above an edge since then on all routes of both services, and their deploys before. */
async function sendReleases(attacker: Attacker): Promise<void> {
  const beganMs = nowMs() - sinceMinutes * minuteMs
  for (const { deployedMinutes, service } of services) {
    await send(attacker, versionsBody(service, beganMs - deployedMinutes * minuteMs))
    const points = Array.from({ length: sinceMinutes * routes }, (_, at) => ({
      atMs: beganMs + Math.floor(at / routes) * minuteMs,
      value: 1000,
      attributes: { route: `/${service}/${at % routes}` },
    }))
    await send(attacker, gaugeBody(service, metric, points).bytes)
  }
}

/** Creates detectors that find an anomaly in each series, and runs each once. */
async function findAnomalies(attacker: Attacker): Promise<void> {
  for (const { service } of services) {
    for (let at = 0; at < detectorsOfEach; at++) {
      const json = {
        name: `released-${service}-${at}`,
        metric_key: metric,
        method_key: 'threshold',
        params: alarmingAbove500,
        scope: { service, group_by: 'route' },
        window_minutes: 1440,
        schedule_minutes: 15,
      }
      const { text } = await attacker.call('POST', '/anomalies/detectors', { role: 'member', json })
      const { id }: { id?: string } = text.startsWith('{') ? JSON.parse(text) : {}
      await attacker.call('POST', `/anomalies/detectors/${id}/run`, { role: 'member' })
    }
  }
}

const readings = ['/incidents', '/anomalies?limit=500']

export const attackByReleases: Attack = {
  name: 'incidents-of-releases',
  does: 'Eight connections read incidents and anomalies: 1,000 that overlap, of services with 200 versions each.',
  prepare: async (attacker) => {
    await sendReleases(attacker)
    await findAnomalies(attacker)
  },
  run: (attacker) => {
    let next = 0
    return attacker.loops(8, () =>
      attacker.call('GET', readings[next++ % readings.length] ?? '', { role: 'viewer' }),
    )
  },
}
