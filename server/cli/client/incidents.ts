// `lethe incidents`: anomalies that belong together, where they likely began, and what happened when.

import type { Incident, IncidentOrigin } from '../../../contract/detection/incidents.ts'
import { incidentOperations } from '../../../contract/operations/incidents.ts'
import { type JsonOption, print, printJson } from '../print.ts'
import { ApiClient } from './api.ts'
import { readPages } from './pages.ts'
import type { Connection } from './settings.ts'
import { durationText } from './text.ts'

interface IncidentOptions extends JsonOption {
  readonly state?: string
  readonly service?: string
  readonly from?: string
  readonly until?: string
  readonly limit: string
}

const shownCandidates = 3

export async function listIncidents(connection: Connection, options: IncidentOptions): Promise<void> {
  const api = new ApiClient(connection, {
    'query.state': '--state',
    'query.service': '--service',
    'query.range_start': '--from',
    'query.range_end': '--until',
  })
  const { from, limit, service, state, until } = options
  const query = {
    ...(state !== undefined && { state }),
    ...(service !== undefined && { service }),
    ...(from !== undefined && { range_start: from }),
    ...(until !== undefined && { range_end: until }),
  }
  const { items, json } = await readPages(api, { operation: incidentOperations.list, query, limit })
  if (options.json) return printJson({ items: json })
  for (const item of items) print(lineOf(item))
  if (items.length === 0) print('No incidents.')
}

export async function showIncident(connection: Connection, id: string, options: JsonOption): Promise<void> {
  const api = new ApiClient(connection)
  const { json, value } = await api.call(incidentOperations.get, { params: { incident_id: id } })
  if (options.json) return printJson(json)
  print(value.title)
  print(`${value.id}  ${value.state}  ${whenText(value)}${value.muted ? '  (muted)' : ''}`)
  print('')
  print('Where it likely began')
  for (const candidate of value.candidates.slice(0, shownCandidates)) printCandidate(candidate)
  print('')
  print('What happened')
  for (const { anomaly_id, at, text } of value.timeline) {
    print(`  ${at}  ${text}${anomaly_id === null ? '' : `  ${anomaly_id}`}`)
  }
}

function printCandidate({ metric_key, score, service, why }: IncidentOrigin): void {
  print(`  ${Math.round(score * 100)} %  ${service ?? '-'}  ${metric_key}`)
  for (const sentence of why) print(`        ${sentence}`)
}

function lineOf(incident: Incident): string {
  const { anomaly_count, id, muted, state, title } = incident
  const anomalies = `${anomaly_count} anomal${anomaly_count === 1 ? 'y' : 'ies'}`
  return `${id}  ${state.padEnd(6)}  ${whenText(incident)}  ${anomalies}  ${title}${muted ? '  (muted)' : ''}`
}

function whenText({ ended_at, seen_until, started_at }: Incident): string {
  const lasted = durationText(Date.parse(ended_at ?? seen_until) - Date.parse(started_at))
  return `${started_at} for ${lasted}${ended_at === null ? ' so far' : ''}`
}
