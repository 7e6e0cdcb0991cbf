// GET /audit-log and GET /ledger: an organisation's own two chains, for its owners and admins.

import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import { AuditEntry, ChainQuery } from '../../contract/audit.ts'
import { pageOf } from '../../contract/common.ts'
import { LedgerEntry } from '../../contract/deletion.ts'
import type { Control } from '../control/database.ts'
import { decodeCursor, invalidCursor, pageOfRows } from '../http/cursor.ts'
import { route } from '../http/route.ts'
import type { SealedEntry } from './chain.ts'
import { listChain } from './log.ts'

export function addAuditRoutes(http: FastifyInstance, control: Control): void {
  addChainRoute(http, control, 'audit_entries', '/audit-log', 'Who did what, newest first', AuditEntry)
  addChainRoute(
    http,
    control,
    'ledger_entries',
    '/ledger',
    'The life of every deletion request, newest first',
    LedgerEntry,
  )
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

function readPosition(cursor: string | undefined): number | null {
  const position = decodeCursor(cursor, 1)
  if (position === null) return null
  if (/^\d{1,15}$/.test(position[0] ?? '')) return Number(position[0])
  throw invalidCursor(cursor)
}
