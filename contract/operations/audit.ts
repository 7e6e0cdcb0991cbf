// The two hash chains of an organisation, for its owners and admins, and the public keys that verify
// signatures.

import { z } from 'zod'
import {
  auditEntryExample,
  auditLogFileExample,
  completedEntryExample,
  jwksExample,
  ledgerFileExample,
} from '../examples/evidence.ts'
import { operation } from '../operation.ts'
import {
  AuditLogQuery,
  AuditPage,
  ExportQuery,
  Jwks,
  LedgerPage,
  LedgerQuery,
} from '../organisation/audit.ts'
import { administrators } from '../role.ts'

/** Each export reads and signs a whole chain. An archive needs one export a day. */
const exportRate = { perMinute: 10, burst: 10 }

/** The lines of an export. They are parsed one by one, not as a whole. */
const ChainLines = z
  .unknown()
  .describe(
    'One line of RFC 8785 JSON per entry, oldest first, each with its hash; the last line is `{"checkpoint": "<compact JWS>"}` over tenant_id, chain, entries, head and at. A file without it is incomplete.',
  )
const chainFile = {
  body: ChainLines,
  types: ['application/x-ndjson'],
  headers: ['content-disposition'],
} as const

export const auditOperations = {
  auditLog: operation({
    id: 'getAuditLog',
    method: 'GET',
    path: '/audit-log',
    access: administrators,
    tag: 'Evidence',
    summary: 'Entries of the audit log, newest first',
    query: AuditLogQuery,
    results: {
      200: { body: AuditPage, example: { items: [auditEntryExample], next_cursor: null } },
    },
  }),
  ledger: operation({
    id: 'getLedger',
    method: 'GET',
    path: '/ledger',
    access: administrators,
    tag: 'Evidence',
    summary: 'Entries of the ledger of deletion requests, newest first',
    query: LedgerQuery,
    results: {
      200: { body: LedgerPage, example: { items: [completedEntryExample], next_cursor: null } },
    },
  }),
  exportAuditLog: operation({
    id: 'exportAuditLog',
    method: 'GET',
    path: '/audit-log/export',
    access: administrators,
    tag: 'Evidence',
    summary: 'The whole audit log as a file that `lethe audit verify` checks',
    rate: exportRate,
    query: ExportQuery,
    results: { 200: { ...chainFile, example: auditLogFileExample } },
  }),
  exportLedger: operation({
    id: 'exportLedger',
    method: 'GET',
    path: '/ledger/export',
    access: administrators,
    tag: 'Evidence',
    summary: 'The whole ledger as a file that `lethe ledger verify` checks',
    rate: exportRate,
    query: ExportQuery,
    results: { 200: { ...chainFile, example: ledgerFileExample } },
  }),
  signingKeys: operation({
    id: 'getSigningKeys',
    method: 'GET',
    path: '/.well-known/jwks.json',
    access: 'public',
    tag: 'Evidence',
    summary: 'The public keys of certificates and checkpoints, including retired ones',
    results: { 200: { body: Jwks, headers: ['cache-control'], example: jwksExample } },
  }),
} as const

/** The export of each chain. */
export const exportOf = {
  audit: auditOperations.exportAuditLog,
  ledger: auditOperations.exportLedger,
} as const
