// Incidents: anomalies that belong together, reported as one.

import { Incident, IncidentListQuery, IncidentParams, IncidentWithMembers } from '../detection/incidents.ts'
import { incidentExample } from '../examples/incidents.ts'
import { operation } from '../operation.ts'
import { readers } from '../role.ts'
import { pageOf } from '../values/fields.ts'

const { candidates: _candidates, members: _members, timeline: _timeline, ...listed } = incidentExample

export const incidentOperations = {
  list: operation({
    id: 'getIncidents',
    method: 'GET',
    path: '/incidents',
    access: readers,
    tag: 'Detection',
    summary: 'Incidents of your organisation, latest start first',
    query: IncidentListQuery,
    results: { 200: { body: pageOf(Incident), example: { items: [listed], next_cursor: null } } },
    refusals: ['erasing'],
  }),
  get: operation({
    id: 'getIncidentsByIncidentId',
    method: 'GET',
    path: '/incidents/:incident_id',
    access: readers,
    tag: 'Detection',
    summary: 'An incident, its anomalies, where it may have begun, and what happened when',
    params: IncidentParams,
    results: { 200: { body: IncidentWithMembers, example: incidentExample } },
    refusals: ['not_found', 'erasing'],
  }),
} as const
