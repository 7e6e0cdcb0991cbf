// An organisation's own two chains, for its owners and admins: in pages from the newest entry back, and as a file to
// keep and check elsewhere; and, for whoever is to check a signature of ours, the public keys.

import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { AuditEntry, ChainQuery, Jwks } from '../../contract/audit.ts'
import { pageOf } from '../../contract/common.ts'
import { LedgerEntry } from '../../contract/deletion.ts'
import { ErrorBody, ValidationError } from '../../contract/errors.ts'
import type { Control } from '../control/database.ts'
import { InvalidInput } from '../core/app-error.ts'
import { decodeCursor, invalidCursor, pageOfRows } from '../core/cursor.ts'
import { problemsOf } from '../core/schema-problems.ts'
import { callerOf, route, takeRate } from '../http/route.ts'
import type { SealedEntry } from './chain.ts'
import { type ExportDeps, exportChain } from './export.ts'
import { type ChainName, listChain } from './log.ts'
import type { SigningKeys } from './signing.ts'

export function addAuditRoutes(http: FastifyInstance, deps: ExportDeps): void {
  const { control, keys } = deps
  addChainRoute(http, control, 'audit_entries', '/audit-log', 'Who did what, newest first', AuditEntry)
  addChainRoute(
    http,
    control,
    'ledger_entries',
    '/ledger',
    'The life of every deletion request, newest first',
    LedgerEntry,
  )
  addExportRoute(http, deps, 'audit', '/audit-log/export')
  addExportRoute(http, deps, 'ledger', '/ledger/export')
  addKeysRoute(http, keys)
}

function addChainRoute<Entry extends z.ZodType>(
  http: FastifyInstance,
  control: Control,
  table: 'audit_entries' | 'ledger_entries',
  url: string,
  summary: string,
  entry: Entry,
): void {
  route(http, {
    method: 'GET',
    url,
    access: ['owner', 'admin'],
    tag: 'Evidence',
    summary,
    query: ChainQuery,
    result: pageOf(entry),
    handle: async ({ caller, query }) => {
      const beforeSeq = readPosition(query.cursor)
      const rows = await listChain(control, table, caller.tenantId, { limit: query.limit + 1, beforeSeq })
      const seqOf = (row: SealedEntry): readonly string[] => [String(JSON.parse(row.text).seq)]
      return {
        body: pageOfRows(rows, query.limit, seqOf, (row) => ({ ...JSON.parse(row.text), hash: row.hash })),
      }
    },
  })
}

/** Long enough to spare a busy verifier the way, short enough that a new key is known within minutes. */
const keysMaxAgeSeconds = 300

function addKeysRoute(http: FastifyInstance, keys: SigningKeys): void {
  http.get(
    '/.well-known/jwks.json',
    {
      config: { access: 'public' },
      schema: {
        operationId: 'getSigningKeys',
        tags: ['Evidence'],
        summary: 'The public keys that certificates and checkpoints are signed with, retired ones included',
        response: { 200: Jwks },
      },
    },
    async (_request, reply) => {
      reply.header('cache-control', `public, max-age=${keysMaxAgeSeconds}`)
      return keys.jwks()
    },
  )
}

/** Each reads and signs a whole chain. An archive takes one a day. */
const exportRate = { perMinute: 10, burst: 10 }

const ndjson = 'application/x-ndjson'

const exportMeaning =
  'One line of RFC 8785 JSON per entry, oldest first, each with its hash; the last line is `{"checkpoint": "<compact JWS>"}` over tenant_id, chain, entries, head and at. A file without it is not whole.'

function addExportRoute(http: FastifyInstance, deps: ExportDeps, chain: ChainName, url: string): void {
  http.get(
    url,
    {
      config: { access: ['owner', 'admin'] },
      schema: {
        operationId: chain === 'audit' ? 'exportAuditLog' : 'exportLedger',
        tags: ['Evidence'],
        summary: `The whole ${chain === 'audit' ? 'audit log' : 'ledger'} as a file that \`lethe ${chain} verify\` checks`,
        security: [{ bearer: [] }],
        response: {
          200: { description: exportMeaning, content: { [ndjson]: { schema: z.unknown() } } },
          401: ErrorBody.describe('No valid access token.'),
          403: ErrorBody.describe('The role of the token may not read this.'),
          422: ValidationError,
          429: ErrorBody.describe(
            'Asked for too often, or too much of earlier answers is not read yet; repeat after Retry-After.',
          ),
          503: ErrorBody.describe('The service is starting or stopping.'),
        },
      },
    },
    async (request, reply) => {
      takeRate(http, request, exportRate)
      const query = z.strictObject({}).safeParse(request.query)
      if (!query.success) throw new InvalidInput(problemsOf('query', query.error.issues, request.query))
      const { tenantId } = callerOf(request)
      reply.type(ndjson)
      reply.header('content-disposition', `attachment; filename="${chain}-${tenantId}.ndjson"`)
      return reply.send(Readable.from(exportChain(deps, chain, tenantId)))
    },
  )
}

function readPosition(cursor: string | undefined): number | null {
  const position = decodeCursor(cursor, 1)
  if (position === null) return null
  if (/^\d{1,15}$/.test(position[0] ?? '')) return Number(position[0])
  throw invalidCursor(cursor)
}
