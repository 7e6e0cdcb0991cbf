// The old and the new count, where the telemetry has changed between them.

import type { DeletionPreview } from '../../../../contract/deletion/requests.ts'
import { Instant } from '../../ui/instant.tsx'
import { Notice } from '../../ui/states.tsx'
import { bytesText, countOf } from '../../ui/units.ts'

interface ChangedCountProps {
  readonly before: DeletionPreview
  readonly after: DeletionPreview
}

export function ChangedCount({ after, before }: ChangedCountProps) {
  return (
    <Notice title="The count has changed, so nothing was erased" kind="warn" isAlert>
      <div className="compare">
        <Side title="You confirmed" preview={before} />
        <Side title="Stored now" preview={after} />
      </div>
      <p>Press the button again to erase what is stored now.</p>
    </Notice>
  )
}

function Side({ preview, title }: { readonly title: string; readonly preview: DeletionPreview }) {
  return (
    <div>
      <div className="muted">
        {title}, counted <Instant at={preview.created_at} />
      </div>
      <div className="big-number">
        {countOf(preview.rows, 'row')}, {bytesText(preview.bytes)}
      </div>
    </div>
  )
}
