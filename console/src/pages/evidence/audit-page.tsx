// The audit log: who did what in the organisation, in a hash chain that the reader can verify.

import { auditOperations } from '../../../../contract/operations/audit.ts'
import { call } from '../../api/client.ts'
import { useMay } from '../../api/session.ts'
import { Forbidden } from '../../ui/states.tsx'
import { ChainView } from './chain-view.tsx'
import { auditEntryOf } from './entry.ts'

/** Nouns of actions, as the filter takes them; a whole action is set by a click on it. */
const nouns = [
  'anomaly',
  'certificate',
  'deletion',
  'deletion_policy',
  'detector',
  'legal_hold',
  'mute',
  'organisation',
  'quota',
  'retention',
  'session',
  'sign_in_code',
  'signing_key',
  'token',
] as const

const filters = [
  { name: 'actor', label: 'Who', placeholder: 'token:ci (tok_…)' },
  {
    name: 'action',
    label: 'What',
    choices: [
      { value: '', label: 'every action' },
      ...nouns.map((noun) => ({ value: noun, label: noun.replaceAll('_', ' ') })),
    ],
  },
  { name: 'target', label: 'About', placeholder: 'del_…, tok_…, hld_…' },
  {
    name: 'outcome',
    label: 'Outcome',
    choices: [
      { value: '', label: 'accepted or refused' },
      { value: 'accepted', label: 'accepted' },
      { value: 'refused', label: 'refused' },
    ],
  },
] as const

export function AuditPage() {
  const may = useMay(auditOperations.auditLog)
  return (
    <>
      <h1>Audit log</h1>
      {may ? (
        <ChainView
          chain="audit"
          filters={filters}
          whatFilter="action"
          targetFilter="target"
          read={async (query) => {
            const { items, next_cursor } = await call(auditOperations.auditLog, { query })
            return { entries: items.map(auditEntryOf), next_cursor }
          }}
        />
      ) : (
        <Forbidden operation={auditOperations.auditLog} what="reading the audit log" />
      )}
    </>
  )
}
