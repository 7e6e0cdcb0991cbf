// An organisation's own two chains, for its owners and admins: in pages from the newest entry back, and as a
// file that can be kept and checked elsewhere; and, for checking our signatures, the public keys.

import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { auditOperations } from '../../contract/operations/audit.ts'
import type { Control } from '../control/database.ts'
import type { Caller } from '../core/caller.ts'
import { decodeCursor, invalidCursor, pageOfRows } from '../core/cursor.ts'
import { routeOf, serve } from '../http/serve.ts'
import type { SealedEntry } from './chain.ts'
import { type ExportDeps, exportChain } from './export.ts'
import { type ChainName, listChain } from './log.ts'
import type { SigningKeys } from './signing.ts'

export function addAuditRoutes(http: FastifyInstance, deps: ExportDeps): void {
  const { control, keys } = deps
  serve(http, auditOperations.auditLog, {
    handle: (question) => pageOfChain(control, 'audit_entries', question),
  })
  serve(http, auditOperations.ledger, {
    handle: (question) => pageOfChain(control, 'ledger_entries', question),
  })
  serve(http, auditOperations.exportAuditLog, { handle: async ({ caller }) => fileOf(deps, 'audit', caller) })
  serve(http, auditOperations.exportLedger, { handle: async ({ caller }) => fileOf(deps, 'ledger', caller) })
  addKeysRoute(http, keys)
}

interface ChainQuestion {
  readonly caller: Caller
  readonly query: { readonly limit: number; readonly cursor?: string | undefined }
}

async function pageOfChain(
  control: Control,
  table: 'audit_entries' | 'ledger_entries',
  { caller, query }: ChainQuestion,
) {
  const beforeSeq = readPosition(query.cursor)
  const rows = await listChain(control, table, caller.tenantId, { limit: query.limit + 1, beforeSeq })
  const seqOf = (row: SealedEntry): readonly string[] => [String(JSON.parse(row.text).seq)]
  return {
    body: pageOfRows(rows, query.limit, seqOf, (row) => ({ ...JSON.parse(row.text), hash: row.hash })),
  }
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

function fileOf(deps: ExportDeps, chain: ChainName, { tenantId }: Caller) {
  return {
    headers: { 'content-disposition': `attachment; filename="${chain}-${tenantId}.ndjson"` },
    body: undefined,
    stream: Readable.from(exportChain(deps, chain, tenantId)),
  }
}

function readPosition(cursor: string | undefined): number | null {
  const position = decodeCursor(cursor, 1)
  if (position === null) return null
  if (/^\d{1,15}$/.test(position[0] ?? '')) return Number(position[0])
  throw invalidCursor(cursor)
}
