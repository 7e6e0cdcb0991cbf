// A field for a bound of the range. It shows the instant in the reader's zone with its offset, and accepts
// any form with one meaning; an invalid text is kept, with an error.

import { TextInput } from '@mantine/core'
import { useState } from 'react'
import { instantText, offsetText, parseTyped } from './instants.ts'
import { useZone } from './preferences.ts'

interface BoundFieldProps {
  readonly label: string
  readonly hint: string
  readonly value: string | null
  readonly error?: string | null
  readonly onChange: (value: string | null) => void
}

export function BoundField({ error = null, hint, label, onChange, value }: BoundFieldProps) {
  const zone = useZone()
  /** What is being typed; null while the field shows the value. */
  const [typed, setTyped] = useState<string | null>(null)
  const shown =
    value === null
      ? ''
      : `${instantText(value, zone, { fraction: true })} ${offsetText(Date.parse(value), zone)}`
  const isUnreadable = typed !== null && typed.trim() !== '' && parseTyped(typed, zone) === null
  const commit = () => {
    if (typed === null || isUnreadable) return
    const text = typed.trim()
    setTyped(null)
    if (text !== shown) onChange(text === '' ? null : parseTyped(text, zone))
  }
  return (
    <TextInput
      label={label}
      description={hint}
      w={290}
      value={typed ?? shown}
      placeholder="2026-11-03 14:00"
      spellCheck={false}
      autoComplete="off"
      error={
        isUnreadable ? 'Write it as 2026-11-03 14:00, with seconds or an offset where you need them.' : error
      }
      onChange={(event) => setTyped(event.currentTarget.value)}
      onBlur={commit}
      onKeyDown={(event) => {
        if (event.key === 'Enter') commit()
      }}
    />
  )
}
