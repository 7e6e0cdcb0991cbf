// Examples of evidence: entries of the ledger and the audit log, their exports, and the signing keys.

import type { z } from 'zod'
import type { LedgerEntry } from '../deletion/requests.ts'
import type { AuditEntry, Jwks } from '../organisation/audit.ts'
import { ada, requestId } from './acme.ts'
import { organisationRemovedExample } from './organisation.ts'

const selected = {
  scope: 'range',
  signals: ['logs', 'traces'],
  range_start: '2026-11-21T08:00:00Z',
  range_end: '2026-11-21T09:30:00Z',
}

export const completedEntryExample: z.output<typeof LedgerEntry> = {
  seq: 3,
  kind: 'data_deletion_request',
  request_id: requestId,
  at: '2026-11-21T09:30:02.530Z',
  actor: 'system:deletion',
  from_status: 'verifying',
  to_status: 'completed',
  facts: {
    ...selected,
    event: 'verified',
    rows_erased: 182_254,
    bytes_erased: 5_310_882,
    stores: { otel_logs: 121_640, otel_traces: 60_613, anomalies: 1 },
    left_over: { otel_logs: 0, otel_traces: 0, anomalies: 0, unfinished_copies: 0 },
    verified_at: '2026-11-21T09:30:02.517Z',
  },
  prev_hash: 'd4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35',
  hash: '4e07408562bedb8b60ce05c1decfe3ad16b72230967de01f640b7e4729b49fce',
}

export const auditEntryExample: z.output<typeof AuditEntry> = {
  seq: 31,
  at: '2026-11-21T09:30:00.412Z',
  actor: ada,
  action: 'deletion.requested',
  target: requestId,
  outcome: 'accepted',
  facts: {
    ...selected,
    reason: 'leaked_secret',
    refuse_late: false,
    hidden_at: '2026-11-21T09:30:00.412Z',
    starts_at: null,
    approve_by: null,
  },
  prev_hash: '4b227777d4dd1fc61c6f884f48641d02b4d121d3fd328cb08b5531fcacdabf8a',
  hash: 'ef2d127de37b942baad06145e54b0c619a1f22327b2ebbcfbec78f5564afe39d',
}

export const jwksExample: z.output<typeof Jwks> = {
  keys: [
    {
      kty: 'OKP',
      crv: 'Ed25519',
      x: 'ySmqADEE-oTxLnX1AR_7JZul1_6ApUdYZcri3gObjtw',
      kid: 'oVedIij_giTcQzFBNG0ebtUkXblnDoCNzsLoO1K8OSk',
      alg: 'EdDSA',
      use: 'sig',
    },
  ],
}

const { checkpoints } = organisationRemovedExample

/** The last two lines of each export. */
export const auditLogFileExample = fileOf(auditEntryExample, checkpoints.audit)
export const ledgerFileExample = fileOf(completedEntryExample, checkpoints.ledger)

function fileOf(entry: object, checkpoint: string): string {
  return `${JSON.stringify(withSortedFields(entry))}\n${JSON.stringify({ checkpoint })}\n`
}

/** RFC 8785 orders the fields of each object by their names. */
function withSortedFields(value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value
  const sorted = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(sorted.map(([name, part]) => [name, withSortedFields(part)]))
}
