// The step that selects when it is removed, and whether late telemetry is refused.

import { Checkbox, NativeSelect, Radio } from '@mantine/core'
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
  const { delayMinutes, refusesLate } = selection
  const isLater = delayMinutes > 0
  return (
    <section aria-labelledby="when">
      <h2 id="when">2 When</h2>
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
    </section>
  )
}
