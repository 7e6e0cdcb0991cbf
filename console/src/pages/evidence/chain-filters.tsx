// The filters of a chain. They are in the address, so that a link shows the same entries. A text is applied
// when it is complete: on Enter, or when the field is left.

import { Button, NativeSelect, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { AddressState } from '../../ui/address.ts'

/** A filter by its parameter in the operation and in the address. */
export interface ChainFilter {
  readonly name: string
  readonly label: string
  readonly placeholder?: string
  /** Absent where any text may be typed. */
  readonly choices?: readonly { readonly value: string; readonly label: string }[]
}

/** How far back, as the operation takes it; everything where it is absent. */
const spans = [
  { value: '', label: 'any time' },
  { value: '-1h', label: 'last hour' },
  { value: '-1d', label: 'last 24 hours' },
  { value: '-7d', label: 'last 7 days' },
  { value: '-30d', label: 'last 30 days' },
  { value: '-365d', label: 'last 365 days' },
] as const

const timeFilter: ChainFilter = { name: 'range_start', label: 'Time', choices: spans }

interface ChainFiltersProps {
  readonly filters: readonly ChainFilter[]
  readonly state: AddressState
  readonly onChange: (changes: AddressState) => void
}

export function ChainFilters({ filters, onChange, state }: ChainFiltersProps) {
  const all = [...filters, timeFilter]
  const isFiltered = all.some(({ name }) => state[name] !== undefined)
  return (
    <search className="fields filters">
      {all.map((filter) => (
        <Filter
          key={filter.name}
          filter={filter}
          value={state[filter.name] ?? ''}
          onChange={(text) => onChange({ [filter.name]: text === '' ? undefined : text })}
        />
      ))}
      {isFiltered && (
        <Button
          variant="subtle"
          className="filters-clear"
          onClick={() => onChange(Object.fromEntries(all.map(({ name }) => [name, undefined])))}
        >
          Clear filters
        </Button>
      )}
    </search>
  )
}

interface FilterProps {
  readonly filter: ChainFilter
  readonly value: string
  readonly onChange: (text: string) => void
}

function Filter({ filter: { choices, label, placeholder }, onChange, value }: FilterProps) {
  /** What is being typed; null while the field shows the filter. */
  const [typed, setTyped] = useState<string | null>(null)
  if (choices !== undefined) {
    const known = choices.some((choice) => choice.value === value)
    return (
      <NativeSelect
        label={label}
        value={value}
        data={known ? [...choices] : [...choices, { value, label: `since ${value}` }]}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    )
  }
  const commit = () => {
    if (typed === null) return
    setTyped(null)
    if (typed.trim() !== value) onChange(typed.trim())
  }
  return (
    <TextInput
      label={label}
      {...(placeholder !== undefined && { placeholder })}
      value={typed ?? value}
      spellCheck={false}
      autoComplete="off"
      onChange={(event) => setTyped(event.currentTarget.value)}
      onBlur={commit}
      onKeyDown={(event) => {
        if (event.key === 'Enter') commit()
      }}
    />
  )
}
