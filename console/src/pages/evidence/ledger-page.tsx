// The ledger: every step of every deletion request, in a hash chain that the reader can verify.

import { deletionStatuses } from '../../../../contract/deletion/requests.ts'
import { auditOperations } from '../../../../contract/operations/audit.ts'
import { call } from '../../api/client.ts'
import { useMay } from '../../api/session.ts'
import { Forbidden } from '../../ui/states.tsx'
import { ChainView } from './chain-view.tsx'
import { ledgerEntryOf } from './entry.ts'

const filters = [
  { name: 'actor', label: 'Who', placeholder: 'token:ci (tok_…)' },
  {
    name: 'to_status',
    label: 'To status',
    choices: [
      { value: '', label: 'every status' },
      ...deletionStatuses.map((status) => ({ value: status, label: status.replaceAll('_', ' ') })),
    ],
  },
  { name: 'request_id', label: 'Request', placeholder: 'del_…' },
] as const

export function LedgerPage() {
  const may = useMay(auditOperations.ledger)
  return (
    <>
      <h1>Ledger</h1>
      {may ? (
        <ChainView
          chain="ledger"
          filters={filters}
          whatFilter="to_status"
          targetFilter="request_id"
          read={async (query) => {
            const { items, next_cursor } = await call(auditOperations.ledger, { query })
            return { entries: items.map(ledgerEntryOf), next_cursor }
          }}
        />
      ) : (
        <Forbidden operation={auditOperations.ledger} what="reading the ledger" />
      )}
    </>
  )
}
