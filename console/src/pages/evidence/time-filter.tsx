// The filter of a chain by time: how far back, or between two instants. The address contains it in the form
// of the operation.

import { NativeSelect } from '@mantine/core'
import { useState } from 'react'
import type { AddressState } from '../../ui/address.ts'
import { BoundField } from '../../ui/bound-field.tsx'

/** Parameters of the operation that the filter sets. */
export const timeFilters = ['range_start', 'range_end'] as const

const spans = [
  { value: '', label: 'any time' },
  { value: '-1h', label: 'last hour' },
  { value: '-1d', label: 'last 24 hours' },
  { value: '-7d', label: 'last 7 days' },
  { value: '-30d', label: 'last 30 days' },
  { value: '-365d', label: 'last 365 days' },
  { value: 'between', label: 'from … to …' },
] as const

interface TimeFilterProps {
  readonly state: AddressState
  readonly onChange: (changes: AddressState) => void
}

export function TimeFilter({ onChange, state: { range_end, range_start = '' } }: TimeFilterProps) {
  /** Whether two instants are wanted, before one is typed. */
  const [isWanted, setWanted] = useState(false)
  const start = isInstant(range_start) ? range_start : null
  const end = range_end !== undefined && isInstant(range_end) ? range_end : null
  const isBetween = start !== null || end !== null || (isWanted && range_start === '')
  const isKnown = spans.some(({ value }) => value === range_start)
  const choose = (value: string) => {
    setWanted(value === 'between')
    onChange({ range_start: value === '' || value === 'between' ? undefined : value, range_end: undefined })
  }
  const isReversed = start !== null && end !== null && Date.parse(start) >= Date.parse(end)
  return (
    <>
      <NativeSelect
        label="Time"
        value={isBetween ? 'between' : range_start}
        data={
          isBetween || isKnown
            ? [...spans]
            : [...spans, { value: range_start, label: `since ${range_start}` }]
        }
        onChange={(event) => choose(event.currentTarget.value)}
      />
      {isBetween && (
        <>
          <BoundField
            label="From"
            hint="empty: from the beginning"
            value={start}
            onChange={(value) => onChange({ range_start: value ?? undefined })}
          />
          <BoundField
            label="To"
            hint="excluded; empty: until now"
            value={end}
            error={isReversed ? 'The end must be after the start.' : null}
            onChange={(value) => onChange({ range_end: value ?? undefined })}
          />
        </>
      )}
    </>
  )
}

function isInstant(text: string): boolean {
  return /^\d{4}-/.test(text) && !Number.isNaN(Date.parse(text))
}
