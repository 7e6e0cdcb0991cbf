// The detectors of the demo: those that every organisation starts with, and two that the demo creates over
// HTTP. Every organisation has built-in metrics of its requests and logs; it chooses itself which of its own
// metrics to watch. This shop watches the memory of its processes and the count of its visitors; for the
// count it uses counters, because its traces are a sample.
//
// The first run of a detector reports anomalies of its whole window, later runs only of new data. So all
// detectors are disabled while the history is loaded, then run once each, and then follow their schedule.

import type { z } from 'zod'
import { ListedAnomaly } from '../../contract/detection/context.ts'
import { Detector } from '../../contract/detection/detectors.ts'
import { pageOf } from '../../contract/values/fields.ts'
import type { Fetch } from './send.ts'

/** Bodies of `POST /anomalies/detectors`. */
export const demoDetectors = [
  {
    // One bucket is enough: memory of this shop has no peaks, and a leak only grows.
    name: 'Memory by service',
    metric_key: 'system.memory.utilization',
    method_key: 'robust_band',
    params: { direction: 'up', min_abs_dev: 0.08, min_rel_dev: 0.15, violate_n: 1, window_m: 1 },
    scope: { group_by: 'service' },
    window_minutes: 10_080,
    schedule_minutes: 5,
  },
  {
    name: 'Visitors of storefront',
    metric_key: 'http.server.request.count',
    method_key: 'seasonal_band',
    params: { direction: 'down', min_rel_dev: 0.4, violate_n: 2, window_m: 2, warmup_points: 288 },
    scope: { service: 'storefront' },
    window_minutes: 10_080,
    schedule_minutes: 5,
  },
] as const

interface Api {
  /** Base URL of the service, such as `http://127.0.0.1:8080`. */
  readonly endpoint: string
  /** The token of an owner. */
  readonly token: string
  readonly fetch?: Fetch
}

/** Disables the detectors of the organisation and returns their ids. */
export async function pauseDetectors(api: Api): Promise<string[]> {
  const { items } = await call(api, 'GET', '/anomalies/detectors?limit=100', pageOf(Detector))
  for (const { id } of items) await patch(api, id, { enabled: false })
  return items.map(({ id }) => id)
}

/**
 * Adds the demo's own detectors to those that were disabled, runs each once over the history, and enables
 * them. Returns the anomalies, latest first, at most 100.
 */
export async function runOverHistory(api: Api, pausedIds: readonly string[]): Promise<ListedAnomaly[]> {
  const ids = [...pausedIds]
  for (const body of demoDetectors) {
    const { id } = await call(api, 'POST', '/anomalies/detectors', Detector, { ...body, enabled: false })
    ids.push(id)
  }
  for (const id of ids) await call(api, 'POST', `/anomalies/detectors/${id}/run`, Detector)
  for (const id of ids) await patch(api, id, { enabled: true })
  const { items } = await call(api, 'GET', '/anomalies?limit=100', pageOf(ListedAnomaly))
  return items
}

function patch(api: Api, id: string, body: object): Promise<Detector> {
  return call(api, 'PATCH', `/anomalies/detectors/${id}`, Detector, body)
}

/** Throws an error with the text of the response where it is a refusal. */
async function call<T extends z.ZodType>(
  { endpoint, fetch: send = fetch, token }: Api,
  method: string,
  path: string,
  answer: T,
  body?: object,
): Promise<z.output<T>> {
  const response = await send(`${endpoint}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} returned ${response.status}: ${text}`)
  return answer.parse(JSON.parse(text))
}
