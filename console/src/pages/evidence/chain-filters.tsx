// The filters of a chain. They are in the address, so that a link shows the same entries. A text is applied
// when it is complete: on Enter, or when the field is left.

import { Button, NativeSelect, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { AddressState } from '../../ui/address.ts'
import { TimeFilter, timeFilters } from './time-filter.tsx'

/** A filter by its parameter in the operation and in the address. */
export interface ChainFilter {
  readonly name: string
  readonly label: string
  readonly placeholder?: string
  /** Absent where any text may be typed. */
  readonly choices?: readonly { readonly value: string; readonly label: string }[]
}

interface ChainFiltersProps {
  readonly filters: readonly ChainFilter[]
  readonly state: AddressState
  readonly onChange: (changes: AddressState) => void
}

export function ChainFilters({ filters, onChange, state }: ChainFiltersProps) {
  const names = [...filters.map(({ name }) => name), ...timeFilters]
  const isFiltered = names.some((name) => state[name] !== undefined)
  return (
    <search className="fields filters">
      {filters.map((filter) => (
        <Filter
          key={filter.name}
          filter={filter}
          value={state[filter.name] ?? ''}
          onChange={(text) => onChange({ [filter.name]: text === '' ? undefined : text })}
        />
      ))}
      <TimeFilter state={state} onChange={onChange} />
      {isFiltered && (
        <Button
          variant="subtle"
          className="filters-clear"
          onClick={() => onChange(Object.fromEntries(names.map((name) => [name, undefined])))}
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
    return (
      <NativeSelect
        label={label}
        value={value}
        data={choices.some((choice) => choice.value === value) ? [...choices] : [...choices, value]}
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
