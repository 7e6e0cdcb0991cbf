// Incidents over HTTP. An id of another organisation answers byte for byte like one that does not exist.

import type { FastifyInstance } from 'fastify'
import { incidentOperations } from '../../../contract/operations/incidents.ts'
import { formatInstant, instantOf, type Moment, parseInstant } from '../../../contract/values/instant.ts'
import { AppError } from '../../core/app-error.ts'
import type { Caller } from '../../core/caller.ts'
import type { Clock } from '../../core/clock.ts'
import { decodeCursor, encodeCursor, invalidCursor, pageOfRows } from '../../core/input/cursor.ts'
import { serve } from '../../http/serve.ts'
import type { TenantReader } from '../../telemetry/tenant-reader.ts'
import type { IncidentPosition, Incidents } from './incidents.ts'

interface IncidentRoutesOptions {
  readonly incidents: Incidents
  readonly readerOf: (caller: Caller) => TenantReader
  readonly clock: Clock
}

export function addIncidentRoutes(
  http: FastifyInstance,
  { clock, incidents, readerOf }: IncidentRoutesOptions,
): void {
  serve(http, incidentOperations.list, {
    handle: async ({ caller, query }) => {
      const { cursor, limit, range_end, range_start, service, state } = query
      const nowNs = clock.nowNs()
      const instant = (moment: Moment | undefined) =>
        moment === undefined ? undefined : instantOf(moment, nowNs)
      const range = { startNs: instant(range_start), endNs: instant(range_end) }
      const page = { limit, state, service, ...range, before: readPosition(cursor) }
      const reader = readerOf(caller)
      const answer = await reader.answer(() => incidents.list(reader, page, nowNs))
      const found = answer.body
      const cut = pageOfRows(
        found.incidents,
        limit,
        ({ position }) => partsOf(position),
        ({ incident }) => incident,
      )
      const isWhole = cut.items.length === found.incidents.length
      const next = isWhole && found.next !== null ? encodeCursor(partsOf(found.next)) : cut.next_cursor
      return { ...answer, body: { items: cut.items, next_cursor: next } }
    },
  })

  serve(http, incidentOperations.get, {
    handle: async ({ caller, params }) => {
      const [reader, nowNs] = [readerOf(caller), clock.nowNs()]
      const { body, requireCurrent } = await reader.answer(() =>
        incidents.find(reader, params.incident_id, nowNs),
      )
      if (body === null) throw new AppError('not_found')
      return { body, requireCurrent }
    },
  })
}

function partsOf({ id, startedNs }: IncidentPosition): string[] {
  return [formatInstant(startedNs), id]
}

function readPosition(cursor: string | undefined): IncidentPosition | null {
  const parts = decodeCursor(cursor, 2)
  if (parts === null) return null
  const started = parseInstant(parts[0] ?? '')
  if ('ns' in started) return { startedNs: started.ns, id: parts[1] ?? '' }
  throw invalidCursor(cursor)
}
