// One of a few views, chosen by buttons in a row. They are radio buttons of the browser whose labels are
// drawn: the chosen one needs no measuring, which would lay out the page once more before it is painted.

import { useId } from 'react'

interface ChoiceProps<Value extends string> {
  /** What is chosen, for a screen reader. */
  readonly label: string
  readonly value: Value
  readonly options: readonly { readonly value: Value; readonly text: string }[]
  readonly onChange: (value: Value) => void
}

export function Choice<Value extends string>({ label, onChange, options, value }: ChoiceProps<Value>) {
  const name = useId()
  return (
    <div className="choice" role="radiogroup" aria-label={label}>
      {options.map((one) => (
        <label key={one.value}>
          <input
            type="radio"
            name={name}
            checked={one.value === value}
            onChange={() => onChange(one.value)}
          />
          <span>{one.text}</span>
        </label>
      ))}
    </div>
  )
}
