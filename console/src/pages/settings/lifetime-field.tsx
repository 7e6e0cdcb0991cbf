// The field for how long a new token works.

import { NativeSelect, TextInput } from '@mantine/core'
import { inherited, type Lifetime, lifetimeDays, otherDays, usualDays } from './lifetime.ts'

interface LifetimeFieldProps {
  readonly value: Lifetime
  /** The error of the service about it. */
  readonly error: string | null
  readonly onChange: (lifetime: Lifetime) => void
}

export function LifetimeField({ error, onChange, value }: LifetimeFieldProps) {
  const isOther = value.choice === otherDays
  return (
    <>
      <NativeSelect
        label="Works for"
        description="at most as long as your own token"
        value={value.choice}
        error={isOther ? null : error}
        data={[
          { value: inherited, label: 'as long as your token' },
          ...usualDays.map((days) => ({ value: days, label: `${days} days` })),
          { value: otherDays, label: 'another number of days' },
        ]}
        onChange={(event) => onChange({ ...value, choice: event.currentTarget.value })}
      />
      {isOther && (
        <TextInput
          label="Days"
          description="1 to 3650"
          w={130}
          inputMode="numeric"
          value={value.typed}
          error={lifetimeDays(value) === null ? 'A number from 1 to 3650' : error}
          onChange={(event) => onChange({ ...value, typed: event.currentTarget.value })}
        />
      )}
    </>
  )
}
