// The step with the reason, which is in the address, and a note, which is not, because it may be private.

import { NativeSelect, TextInput } from '@mantine/core'
import { deletionReasons } from '../../../../contract/deletion/requests.ts'
import { useAddress } from '../../ui/address.ts'
import type { Selection } from './selection.ts'

interface WhyStepProps {
  readonly selection: Selection
  readonly note: string
  readonly onNote: (note: string) => void
}

export function WhyStep({ note, onNote, selection: { reason } }: WhyStepProps) {
  const [, change] = useAddress()
  return (
    <section aria-labelledby="why">
      <h2 id="why">3 Why</h2>
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
        <TextInput
          label="Note"
          description="No personal data: it outlives the telemetry"
          w={420}
          maxLength={500}
          value={note}
          autoComplete="off"
          onChange={(event) => onNote(event.currentTarget.value)}
        />
      </div>
    </section>
  )
}
