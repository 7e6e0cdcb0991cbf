// The telemetry of the organisations of the bench, as OTLP protobuf: a history for both, which is sent once,
// and more that the attacks send. Times are relative to the start, so that charts of the last hour or month
// include them.

import type { Signal } from '../../server/telemetry/schema/tables.ts'
import { encodeProto } from '../../tests/otlp/otlp-messages.ts'

export interface Body {
  readonly signal: Signal
  readonly bytes: Buffer
}

/** A gauge of the honest organisation, for charts and detectors. */
export const honestMetric = 'checkout.latency'

/** A gauge of the attacker with {@link attackerRoutes} routes and a month of history. */
export const attackerMetric = 'attacker.load'
const attackerRoutes = 100

/** Minutes of history of the honest organisation; each erasure takes one of them. */
export const honestHistoryMinutes = 120

const nsPerMs = 1_000_000n
const minuteMs = 60_000

export const nowMs = (): number => Date.now()
export const instant = (ms: number): string => new Date(ms).toISOString()
const nanoseconds = (ms: number): string => String(BigInt(Math.round(ms)) * nsPerMs)
const text = (key: string, value: string) => ({ key, value: { stringValue: value } })

interface Point {
  readonly atMs: number
  readonly value: number
  readonly attributes: Readonly<Record<string, string>>
}

/** Headers of a body of OTLP in protobuf. */
export const protobuf = { 'content-type': 'application/x-protobuf' }

/** One gauge of one service. */
export function gaugeBody(service: string, metric: string, points: readonly Point[], unit = 'ms'): Body {
  const dataPoints = points.map(({ atMs, value, attributes }) => ({
    timeUnixNano: nanoseconds(atMs),
    asDouble: value,
    attributes: Object.entries(attributes).map(([key, said]) => text(key, said)),
  }))
  const metrics = [{ name: metric, unit, gauge: { dataPoints } }]
  const resource = { attributes: [text('service.name', service)] }
  const message = { resourceMetrics: [{ resource, scopeMetrics: [{ metrics }] }] }
  return { signal: 'metrics', bytes: encodeProto('metrics', message) }
}

interface LogLine {
  readonly atMs: number
  readonly body: string
  readonly attributes?: Readonly<Record<string, string>>
}

export function logsBody(service: string, lines: readonly LogLine[]): Body {
  const logRecords = lines.map(({ atMs, body, attributes = {} }) => ({
    timeUnixNano: nanoseconds(atMs),
    severityNumber: 9,
    body: { stringValue: body },
    attributes: Object.entries(attributes).map(([key, said]) => text(key, said)),
  }))
  const resource = { attributes: [text('service.name', service)] }
  const message = { resourceLogs: [{ resource, scopeLogs: [{ logRecords }] }] }
  return { signal: 'logs', bytes: encodeProto('logs', message) }
}

/** Points of the honest gauge at one instant: six routes of eight services. */
export function honestPoints(atMs: number): Point[] {
  return Array.from({ length: 48 }, (_, series) => ({
    atMs,
    value: 100 + 20 * Math.sin(atMs / (20 * minuteMs) + series),
    attributes: { route: `/step/${series % 6}`, instance: `pod-${Math.floor(series / 6)}` },
  }))
}

/**
 * The history of the honest organisation: a point of each series every 15 seconds, five log records a minute.
 */
export function* honestHistory(untilMs: number): Generator<Body> {
  const chunk = 10
  for (let minute = honestHistoryMinutes; minute > 0; minute -= chunk) {
    const fromMs = untilMs - minute * minuteMs
    const times = Array.from({ length: chunk * 4 }, (_, at) => fromMs + at * 15_000)
    yield gaugeBody(
      'checkout',
      honestMetric,
      times.flatMap((atMs) => honestPoints(atMs)),
    )
    const lines = Array.from({ length: chunk * 5 }, (_, at) => ({
      atMs: fromMs + at * 12_000,
      body: `order ${at} accepted`,
    }))
    yield logsBody('checkout', lines)
  }
}

/** A month of the attacker's gauge, a point of each route every quarter of an hour. */
export function* attackerHistory(untilMs: number): Generator<Body> {
  const perBody = 48
  for (let quarter = 30 * 96; quarter > 0; quarter -= perBody) {
    const times = Array.from({ length: perBody }, (_, at) => untilMs - (quarter - at) * 15 * minuteMs)
    const points = times.flatMap((atMs) =>
      Array.from({ length: attackerRoutes }, (_, route) => ({
        atMs,
        value: route + Math.sin(atMs / (180 * minuteMs)) * 10,
        attributes: { route: `/r/${route}`, zone: `z${route % 7}` },
      })),
    )
    yield gaugeBody('load', attackerMetric, points)
  }
}
