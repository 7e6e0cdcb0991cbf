// An organisation's own two chains, for its owners and admins: in pages from the newest entry back, and as a
// file that can be kept and checked elsewhere; and, for checking our signatures, the public keys.

import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { auditOperations, exportOf } from '../../contract/operations/audit.ts'
import { latestNs, type Moment } from '../../contract/values/instant.ts'
import type { Caller } from '../core/caller.ts'
import { askedRange } from '../core/input/asked-range.ts'
import { decodeCursor, encodeCursor, invalidCursor, pageOfRows } from '../core/input/cursor.ts'
import { Pace } from '../core/turns/pace.ts'
import { routeOf, serve } from '../http/serve.ts'
import { requireSameToken } from '../http/session-cookie.ts'
import { type EntryFilter, readChainPage } from './chain-page.ts'
import { type ExportDeps, exportChain } from './export.ts'
import type { ChainName, ChainTable } from './log.ts'
import type { SigningKeys } from './signing.ts'

export function addAuditRoutes(http: FastifyInstance, deps: ExportDeps): void {
  const turnOf =
    ({ tenantId }: Caller) =>
    () =>
      http.turns.turnOf(tenantId)
  serve(http, auditOperations.auditLog, {
    handle: ({ caller, query }) => {
      const { action, actor, outcome, target } = query
      return pageOfChain(deps, 'audit_entries', caller, turnOf(caller), {
        ...query,
        fields: { action, actor, outcome, target },
      })
    },
  })
  serve(http, auditOperations.ledger, {
    handle: ({ caller, query }) => {
      const { actor, request_id, to_status } = query
      return pageOfChain(deps, 'ledger_entries', caller, turnOf(caller), {
        ...query,
        fields: { actor, request_id, to_status },
      })
    },
  })
  for (const chain of ['audit', 'ledger'] as const) {
    serve(http, exportOf[chain], {
      handle: async ({ caller, query: { token_id: shown } }) => {
        if (shown !== undefined) requireSameToken(shown, caller)
        return fileOf(deps, chain, caller, turnOf(caller))
      },
    })
  }
  addKeysRoute(http, deps.keys)
}

interface ChainQuestion {
  readonly limit: number
  readonly cursor?: string | undefined
  readonly range_start?: Moment | undefined
  readonly range_end?: Moment | undefined
  readonly fields: EntryFilter['fields']
}

async function pageOfChain(
  { clock, control }: ExportDeps,
  table: ChainTable,
  { tenantId }: Caller,
  turn: () => Promise<void>,
  query: ChainQuestion,
) {
  const { fields, limit } = query
  const { before, ...pinned } = readPosition(query.cursor)
  const range = askedRange({ ...given(query), ...given(pinned) }, clock.nowNs())
  const found = await readChainPage(control, table, tenantId, {
    limit: limit + 1,
    before,
    filter: { range, fields },
    turn,
  })
  const positionOf = (seq: number) => [String(seq), textOf(range.startNs), textOf(range.endNs)]
  const page = pageOfRows(
    found.entries,
    limit,
    ({ seq }) => positionOf(seq),
    (row) => ({ ...JSON.parse(row.text), hash: row.hash }),
  )
  const isUnfinished = page.next_cursor === null && found.before !== null
  return { body: isUnfinished ? { ...page, next_cursor: encodeCursor(positionOf(found.before)) } : page }
}

/** Long enough to save a busy verifier requests, short enough that a new key is known within minutes. */
const keysMaxAgeSeconds = 300

function addKeysRoute(http: FastifyInstance, keys: SigningKeys): void {
  http.route({
    ...routeOf(auditOperations.signingKeys),
    handler: async (_request, reply) => {
      reply.header('cache-control', `public, max-age=${keysMaxAgeSeconds}`)
      return keys.jwks()
    },
  })
}

function fileOf(deps: ExportDeps, chain: ChainName, { tenantId }: Caller, turn: () => Promise<void>) {
  return {
    headers: { 'content-disposition': `attachment; filename="${chain}-${tenantId}.ndjson"` },
    body: undefined,
    stream: Readable.from(exportChain(deps, chain, tenantId, new Pace(turn))),
  }
}

/**
 * Parses a cursor: the number of an entry, and the range of the first page, because a time relative to now
 * would be another one for every page. Throws InvalidInput.
 */
function readPosition(cursor: string | undefined) {
  const texts = decodeCursor(cursor, 3)
  if (texts === null) return { before: null }
  const [seq = '', start = '', end = ''] = texts
  if (!/^\d{1,15}$/.test(seq) || !isBound(start) || !isBound(end)) throw invalidCursor(cursor)
  return { before: Number(seq), range_start: boundOf(start), range_end: boundOf(end) }
}

function isBound(text: string): boolean {
  return text === '' || (/^\d{1,19}$/.test(text) && BigInt(text) <= latestNs)
}

function boundOf(text: string): bigint | undefined {
  return text === '' ? undefined : BigInt(text)
}

function textOf(bound: bigint | null): string {
  return bound === null ? '' : bound.toString()
}

/** Returns only the given bounds, so that an absent one does not overwrite another. */
function given({ range_end, range_start }: Pick<ChainQuestion, 'range_start' | 'range_end'>) {
  return { ...(range_start !== undefined && { range_start }), ...(range_end !== undefined && { range_end }) }
}
