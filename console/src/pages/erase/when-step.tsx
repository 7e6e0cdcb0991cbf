// When it is removed, whether late telemetry is refused, and why it is erased.

import { Checkbox, NativeSelect, Radio } from '@mantine/core'
import { deletionReasons } from '../../../../contract/deletion.ts'
import { useAddress } from '../../ui/address.ts'
import type { Selection } from './selection.ts'

const delays: readonly (readonly [minutes: number, label: string])[] = [
  [60, '1 hour'],
  [1_440, '24 hours'],
  [10_080, '7 days'],
  [43_200, '30 days'],
]
const usualDelay = 1_440

export function WhenStep({ selection }: { readonly selection: Selection }) {
  const [, change] = useAddress()
  const { delayMinutes, reason, refusesLate } = selection
  const isLater = delayMinutes > 0
  return (
    <section aria-labelledby="when">
      <h2 id="when">2 When and why</h2>
      <Radio.Group
        aria-label="When it is removed"
        value={isLater ? 'later' : 'now'}
        onChange={(value) => change({ delay: value === 'later' ? String(usualDelay) : undefined })}
      >
        <div className="row">
          <Radio value="now" label="now" />
          <Radio value="later" label="hidden now, removed later: it can be cancelled until then" />
          {isLater && (
            <NativeSelect
              aria-label="Removed after"
              value={String(delayMinutes)}
              data={delays.map(([minutes, label]) => ({ value: String(minutes), label: `after ${label}` }))}
              onChange={(event) => change({ delay: event.currentTarget.value })}
            />
          )}
        </div>
      </Radio.Group>
      <Checkbox
        checked={refusesLate}
        onChange={(event) => change({ late: event.currentTarget.checked ? 'refuse' : undefined })}
        label="refuse telemetry for the erased time that arrives later"
      />
      <div className="fields">
        <NativeSelect
          label="Reason"
          description="stands in the ledger and on the certificate"
          value={reason ?? ''}
          data={[
            { value: '', label: 'none given' },
            ...deletionReasons.map((one) => ({ value: one, label: one.replaceAll('_', ' ') })),
          ]}
          onChange={(event) => change({ reason: event.currentTarget.value || undefined })}
        />
      </div>
    </section>
  )
}
