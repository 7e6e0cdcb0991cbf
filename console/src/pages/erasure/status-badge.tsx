// The status of a request as a label; its meaning is in the title.

import type { DeletionRequest } from '../../../../contract/deletion/requests.ts'
import { statusTexts } from './status-text.ts'

export function StatusBadge({ status }: Pick<DeletionRequest, 'status'>) {
  const { kind, label, says } = statusTexts[status]
  return (
    <span className="status" data-kind={kind} title={says}>
      {label}
    </span>
  )
}
