// The pages in the rail, the command palette and the keys.

import type { Operation } from '../../../contract/operation.ts'
import { auditOperations } from '../../../contract/operations/audit.ts'
import { deletionOperations } from '../../../contract/operations/deletions.ts'
import { holdOperations, retentionOperations } from '../../../contract/operations/governance.ts'
import { tenancyOperations } from '../../../contract/operations/tenancy.ts'
import { usageOperations } from '../../../contract/operations/usage.ts'

export interface PageLink {
  readonly to: `/$organisation/${'storage' | 'erase' | 'erasures' | 'retention' | 'holds' | 'ledger' | 'audit' | 'send' | 'settings'}`
  readonly label: string
  readonly says: string
  /** Pressed after `g`. */
  readonly key: string
  /** For a role that may not call it, the page says so. */
  readonly operation: Operation
}

/** Whether the page at this address shows the time range of the bar; the others have their own bounds. */
export function hasTimeRange(pathname: string): boolean {
  return pathname.endsWith('/storage')
}

export const pageLinks: readonly PageLink[] = [
  {
    to: '/$organisation/storage',
    label: 'Storage',
    says: 'what is stored, by signal and day',
    key: 's',
    operation: usageOperations.storage,
  },
  {
    to: '/$organisation/erase',
    label: 'Erase',
    says: 'erase a time range, or everything',
    key: 'e',
    operation: deletionOperations.create,
  },
  {
    to: '/$organisation/erasures',
    label: 'Erasures',
    says: 'all requests, their clocks and certificates',
    key: 'r',
    operation: deletionOperations.list,
  },
  {
    to: '/$organisation/retention',
    label: 'Retention',
    says: 'how long each signal is kept',
    key: 'k',
    operation: retentionOperations.get,
  },
  {
    to: '/$organisation/holds',
    label: 'Legal holds',
    says: 'what may not be erased',
    key: 'h',
    operation: holdOperations.list,
  },
  {
    to: '/$organisation/ledger',
    label: 'Ledger',
    says: 'every step of every deletion, verifiable',
    key: 'l',
    operation: auditOperations.ledger,
  },
  {
    to: '/$organisation/audit',
    label: 'Audit log',
    says: 'who did what, verifiable',
    key: 'a',
    operation: auditOperations.auditLog,
  },
  {
    to: '/$organisation/send',
    label: 'Send',
    says: 'what to paste into a sender, and what was refused',
    key: 'n',
    operation: usageOperations.ingest,
  },
  {
    to: '/$organisation/settings',
    label: 'Settings',
    says: 'organisation, tokens, approval rule, signing keys, danger zone',
    key: ',',
    operation: tenancyOperations.organisation,
  },
]

/** Parts of a page that are also in the palette. */
export const settingsLinks = [
  { to: '/$organisation/settings/tokens', label: 'Access tokens', says: 'settings: create, replace, revoke' },
  { to: '/$organisation/settings/approval', label: 'Approval', says: 'settings: what needs a second person' },
  { to: '/$organisation/settings/keys', label: 'Signing keys', says: 'settings: what verifies certificates' },
  { to: '/$organisation/settings/danger', label: 'Danger zone', says: 'settings: erase all, remove' },
] as const
