// The selection of days as two fields beside the chart: an alternative to dragging, and exact where days are
// narrow. A day that is typed is applied when the field is left, or on Enter.

import { TextInput } from '@mantine/core'
import { useState } from 'react'
import { useAddress } from '../../ui/address.ts'
import type { Span } from '../../ui/chart/scale.ts'

interface SelectedDaysProps {
  /** All that can be selected, oldest first. */
  readonly days: readonly string[]
  readonly selection: Span | null
}

export function SelectedDays({ days, selection }: SelectedDaysProps) {
  const [{ first, last }, change] = useAddress()
  const [from, to] = [days[selection?.first ?? -1] ?? first ?? '', days[selection?.last ?? -1] ?? last ?? '']
  return (
    <>
      <DayField
        label="First day to erase"
        days={days}
        value={from}
        onChange={(day) =>
          change({ first: day, last: to === '' || (day !== undefined && to < day) ? day : to })
        }
      />
      <DayField
        label="Last day to erase"
        days={days}
        value={to}
        onChange={(day) =>
          change({ last: day, first: from === '' || (day !== undefined && day < from) ? day : from })
        }
      />
    </>
  )
}

interface DayFieldProps {
  readonly label: string
  readonly days: readonly string[]
  readonly value: string
  /** Undefined where the field was emptied. */
  readonly onChange: (day: string | undefined) => void
}

function DayField({ days, label, onChange, value }: DayFieldProps) {
  /** What is being typed; null while the field shows the selection. */
  const [typed, setTyped] = useState<string | null>(null)
  const text = typed?.trim() ?? ''
  const isUnknown = text !== '' && !days.includes(text)
  const commit = () => {
    if (typed === null || isUnknown) return
    setTyped(null)
    if (text !== value) onChange(text === '' ? undefined : text)
  }
  return (
    <TextInput
      label={label}
      description="UTC day"
      w={160}
      placeholder={days.at(-1) ?? ''}
      value={typed ?? value}
      spellCheck={false}
      autoComplete="off"
      error={isUnknown ? `A day from ${days[0]} to ${days.at(-1)}` : null}
      onChange={(event) => setTyped(event.currentTarget.value)}
      onBlur={commit}
      onKeyDown={(event) => {
        if (event.key === 'Enter') commit()
      }}
    />
  )
}
