// One entry of either chain, as both pages list it.

import type { z } from 'zod'
import type { LedgerEntry } from '../../../../contract/deletion/requests.ts'
import type { AuditEntry } from '../../../../contract/organisation/audit.ts'

export interface ChainEntry {
  readonly seq: number
  readonly at: string
  readonly actor: string
  /** The action, or the change of status. */
  readonly what: string
  /** What the filter of the column takes. */
  readonly filter: string
  readonly target: string | null
  readonly isRefused: boolean
  readonly facts: Readonly<Record<string, unknown>>
  readonly hash: string
  readonly prevHash: string
}

export function auditEntryOf(entry: z.output<typeof AuditEntry>): ChainEntry {
  const { action, actor, at, facts, hash, outcome, prev_hash, seq, target } = entry
  const isRefused = outcome === 'refused'
  return { seq, at, actor, what: action, filter: action, target, isRefused, facts, hash, prevHash: prev_hash }
}

export function ledgerEntryOf(entry: z.output<typeof LedgerEntry>): ChainEntry {
  const { actor, at, facts, from_status, hash, prev_hash, request_id, seq, to_status } = entry
  return {
    seq,
    at,
    actor,
    what: from_status === null ? to_status : `${from_status} → ${to_status}`,
    filter: to_status,
    target: request_id,
    isRefused: false,
    facts,
    hash,
    prevHash: prev_hash,
  }
}
