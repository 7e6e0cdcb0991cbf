// The detectors of the demo: those the organisation starts with, and two that the demo adds, created over
// HTTP as anybody would. Every organisation has the built-in metrics of its requests and logs; which of its
// own metrics matter only it can say. Of this shop it is the memory of its processes, and the count of its
// visitors: its traces are a sample, its counters are not.
//
// A detector tells of its whole window at its first run over it, and afterwards only of what came
// since. So all are kept from running while the history comes in, are then run once each, and from then
// on follow their schedule.

import type { z } from 'zod'
import { pageOf } from '../../contract/common.ts'
import { Detector } from '../../contract/detection.ts'
import { ListedAnomaly } from '../../contract/detection-context.ts'
import type { Fetch } from './send.ts'

/** Bodies of `POST /anomalies/detectors`. */
export const demoDetectors = [
  {
    name: 'Memory by service',
    metric_key: 'system.memory.utilization',
    method_key: 'robust_band',
    params: { direction: 'up', min_abs_dev: 0.1, min_rel_dev: 0.2, violate_n: 3, window_m: 4 },
    scope: { group_by: 'service' },
    window_minutes: 14_400,
    schedule_minutes: 15,
  },
  {
    // By the hour, and at most one false alarm a day: visitors are what a shop lives on.
    name: 'Visitors of storefront by the hour',
    metric_key: 'http.server.request.count',
    method_key: 'seasonal_band',
    params: {
      direction: 'down',
      min_rel_dev: 0.4,
      violate_n: 1,
      window_m: 1,
      warmup_points: 120,
      alarm_budget_per_week: 7,
    },
    scope: { service: 'storefront' },
    window_minutes: 20_160,
    schedule_minutes: 60,
  },
] as const

interface Api {
  /** Base URL of the service, such as `http://127.0.0.1:8080`. */
  readonly endpoint: string
  /** Of an owner. */
  readonly token: string
  readonly fetch?: Fetch
}

/** Switches off the detectors of the organisation, and answers their ids. */
export async function pauseDetectors(api: Api): Promise<string[]> {
  const { items } = await call(api, 'GET', '/anomalies/detectors?limit=100', pageOf(Detector))
  for (const { id } of items) await patch(api, id, { enabled: false })
  return items.map(({ id }) => id)
}

/**
 * Adds the demo's own detectors to those that were paused, runs each once over the history, and switches them
 * on. Answers what they found, latest first, at most 100.
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

/** Throws with the answer's own words where it is a refusal. */
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
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
  return answer.parse(JSON.parse(text))
}
