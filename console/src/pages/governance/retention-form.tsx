// Changes the retention. Where a rule becomes shorter, the service counts the rows that would be erased, and
// the name of the organisation has to be typed.

import { TextInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { Retention } from '../../../../contract/deletion/governance.ts'
import { deletionOperations } from '../../../../contract/operations/deletions.ts'
import { retentionOperations } from '../../../../contract/operations/governance.ts'
import { call } from '../../api/client.ts'
import { useMe } from '../../api/session.ts'
import { ActButton } from '../../ui/act-button.tsx'
import { Instant } from '../../ui/instant.tsx'
import { Failure } from '../../ui/states.tsx'
import { bytesText, countOf } from '../../ui/units.ts'
import {
  type Change,
  changesOf,
  daysIn,
  erasesBefore,
  type Retained,
  retained,
  typedDays,
} from './retention-change.ts'

export function RetentionForm({ retention }: { readonly retention: Retention }) {
  const { tenant_id: organisation } = useMe()
  const [typed, setTyped] = useState(() => typedDays(retention))
  const [word, setWord] = useState('')
  const [mistake, setMistake] = useState<string | null>(null)
  const changes = changesOf(typed, retention)
  const shorter = changes.filter(({ isShorter }) => isShorter)
  const { data, error, isPending, mutate } = useSave(changes, () => setWord(''))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const isWrong = shorter.length > 0 && word !== organisation
    setMistake(isWrong ? `Type ${organisation} here: a shorter rule erases at once.` : null)
    if (!isWrong && retained.every((signal) => daysIn(typed[signal]) !== undefined)) mutate()
  }
  return (
    <form onSubmit={submit} className="section" aria-labelledby="change">
      <h2 id="change">Change the rules</h2>
      <div className="fields">
        {retained.map((signal) => (
          <DaysField
            key={signal}
            signal={signal}
            value={typed[signal]}
            onChange={(value) => setTyped({ ...typed, [signal]: value })}
          />
        ))}
      </div>
      {shorter.map((change) => (
        <WouldErase key={change.signal} change={change} />
      ))}
      {shorter.length > 0 && <WordField word={word} mistake={mistake} onChange={setWord} />}
      <div className="fields">
        <ActButton
          color={shorter.length > 0 ? 'red' : 'blue'}
          loading={isPending}
          disabled={changes.length === 0}
        >
          {shorter.length > 0 ? 'Save, and erase what is older' : 'Save'}
        </ActButton>
        {data !== undefined && (
          <span role="status">
            {data.pending === undefined ? 'Saved.' : 'A part waits for a second person.'}
          </span>
        )}
      </div>
      {error !== null && <Failure error={error} what="The retention was not changed" />}
    </form>
  )
}

function useSave(changes: readonly Change[], onSaved: () => void) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: () =>
      call(retentionOperations.patch, {
        body: Object.fromEntries(changes.map(({ days, signal }) => [`${signal}_days`, days])),
      }),
    onSuccess: () => {
      onSaved()
      return client.invalidateQueries()
    },
  })
}

interface WordFieldProps {
  readonly word: string
  readonly mistake: string | null
  readonly onChange: (word: string) => void
}

function WordField({ mistake, onChange, word }: WordFieldProps) {
  const { tenant_id: organisation } = useMe()
  return (
    <div className="fields">
      <TextInput
        label={`Type ${organisation} to erase what is older`}
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

interface DaysFieldProps {
  readonly signal: Retained
  readonly value: string
  readonly onChange: (value: string) => void
}

function DaysField({ onChange, signal, value }: DaysFieldProps) {
  return (
    <TextInput
      label={`Days of ${signal}`}
      description="empty: no limit"
      w={150}
      inputMode="numeric"
      value={value}
      error={daysIn(value) === undefined ? '1 to 3650' : null}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  )
}

/** Counts what a shorter rule would erase now. */
function WouldErase({ change: { days, signal } }: { readonly change: Change }) {
  const range_end = erasesBefore(days ?? 1)
  const { data, error } = useQuery({
    queryKey: ['preview', 'retention', signal, range_end],
    queryFn: ({ signal: aborted }) =>
      call(deletionOperations.preview, {
        body: { scope: 'range', range_end, signals: [signal] },
        signal: aborted,
      }),
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (error !== null)
    return <Failure error={error} what={`What would go of ${signal} could not be counted`} />
  return (
    <p role="status">
      {signal}:{' '}
      {data === undefined ? 'counting …' : `${countOf(data.rows, 'row')}, ${bytesText(data.bytes)} would go,`}{' '}
      everything before <Instant at={range_end} offset />.
    </p>
  )
}
