// `lethe anomalies`: anomalies of the token's organisation.

import type { Anomaly } from '../../../contract/detection/detectors.ts'
import { anomalyOperations } from '../../../contract/operations/anomalies.ts'
import { type JsonOption, print, printJson } from '../print.ts'
import { ApiClient } from './api.ts'
import { readPages } from './pages.ts'
import type { Connection } from './settings.ts'
import { durationText } from './text.ts'

interface AnomalyOptions extends JsonOption {
  readonly open?: boolean
  readonly muted?: boolean
  readonly detector?: string
  readonly from?: string
  readonly until?: string
  readonly limit: string
}

export async function listAnomalies(connection: Connection, options: AnomalyOptions): Promise<void> {
  const api = new ApiClient(connection, {
    'query.detector_id': '--detector',
    'query.range_start': '--from',
    'query.range_end': '--until',
  })
  const { items, json } = await readPages(api, {
    operation: anomalyOperations.list,
    query: queryOf(options),
    limit: options.limit,
  })
  if (options.json) return printJson({ items: json })
  for (const item of items) print(lineOf(item))
  if (items.length === 0) print('No anomalies.')
}

function queryOf({ detector, from, muted, open, until }: AnomalyOptions): Record<string, string> {
  return {
    ...(open && { open: 'true' }),
    ...(muted === false && { muted: 'false' }),
    ...(detector !== undefined && { detector_id: detector }),
    ...(from !== undefined && { range_start: from }),
    ...(until !== undefined && { range_end: until }),
  }
}

export async function getAnomaly(connection: Connection, id: string, options: JsonOption): Promise<void> {
  const api = new ApiClient(connection)
  const { json, value } = await api.call(anomalyOperations.get, { params: { anomaly_id: id } })
  if (options.json) return printJson(json)
  const { expected, feedback, lower, metric_key, peak_at, reason, score, upper, value: peak } = value
  const lines: readonly (readonly [name: string, text: string])[] = [
    ['id', value.id],
    ['detector', value.detector_id],
    ['series', `${metric_key}${groupText(value)}`],
    ['when', whenText(value)],
    ['peak', `${peak ?? 'no data'} at ${peak_at}, score ${score.toPrecision(3)}`],
    ['expected', `${expected ?? '-'} (band ${lower ?? '-'} to ${upper ?? '-'})`],
    ['why', reason],
    ['verdict', feedback === null ? '-' : feedback.verdict],
  ]
  for (const [name, text] of lines) print(`${name.padEnd(11)} ${text}`)
}

function lineOf(anomaly: Anomaly): string {
  const state = anomaly.ended_at === null ? 'open ' : 'ended'
  const muted = anomaly.muted ? '  (muted)' : ''
  return `${anomaly.id}  ${state}  ${whenText(anomaly)}  ${anomaly.metric_key}${groupText(anomaly)}  ${anomaly.reason}${muted}`
}

function groupText({ group }: Anomaly): string {
  const pairs = Object.entries(group).map(([name, value]) => `${name}="${value}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(', ')}}`
}

function whenText({ ended_at, seen_until, started_at }: Anomaly): string {
  const lasted = durationText(Date.parse(ended_at ?? seen_until) - Date.parse(started_at))
  return `${started_at} for ${lasted}${ended_at === null ? ' so far' : ''}`
}
