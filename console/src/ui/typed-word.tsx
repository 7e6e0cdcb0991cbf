// The field for the word that a person types before an irreversible act: the id of the organisation. It
// offers no completion and no correction, because the typing is the confirmation.

import { TextInput } from '@mantine/core'
import { useMe } from '../api/session.ts'

interface TypedWordProps {
  /** What the word confirms, behind "to". */
  readonly act: string
  readonly word: string
  readonly mistake: string | null
  readonly onChange: (word: string) => void
}

export function TypedWord({ act, mistake, onChange, word }: TypedWordProps) {
  const { tenant_id: organisation } = useMe()
  return (
    <div className="fields">
      <TextInput
        label={`Type ${organisation} to ${act}`}
        w={290}
        value={word}
        error={mistake}
        spellCheck={false}
        autoComplete="off"
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    </div>
  )
}

/** What is wrong with a typed word; null where it is the expected one. */
export function mistakeInWord(word: string, expected: string): string | null {
  if (word === expected) return null
  return word === '' ? `Type ${expected} here.` : `“${word}” is not ${expected}.`
}
