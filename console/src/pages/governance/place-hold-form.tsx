// Places a legal hold on a time range and some signals. Nothing typed is lost where it is refused.

import { Checkbox, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { holdOperations } from '../../../../contract/operations/governance.ts'
import { call } from '../../api/client.ts'
import { ActButton } from '../../ui/act-button.tsx'
import { BoundField } from '../../ui/bound-field.tsx'
import { Failure } from '../../ui/states.tsx'

const signalNames = ['metrics', 'logs', 'traces'] as const

export function PlaceHoldForm() {
  const client = useQueryClient()
  const [caseRef, setCase] = useState('')
  const [start, setStart] = useState<string | null>(null)
  const [end, setEnd] = useState<string | null>(null)
  const [signals, setSignals] = useState<readonly string[]>(signalNames)
  const [mistake, setMistake] = useState<string | null>(null)
  const { error, isPending, mutate } = useMutation({
    mutationFn: () =>
      call(holdOperations.place, {
        body: {
          case_ref: caseRef.trim(),
          signals: signalNames.filter((one) => signals.includes(one)),
          ...(start !== null && { range_start: start }),
          ...(end !== null && { range_end: end }),
        },
      }),
    onSuccess: () => {
      setCase('')
      return client.invalidateQueries()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const found = caseRef.trim() === '' ? 'Name the case.' : null
    setMistake(found)
    if (found === null && signals.length > 0) mutate()
  }
  return (
    <form onSubmit={submit} className="section" aria-labelledby="place">
      <h2 id="place">Place a hold</h2>
      <div className="fields">
        <TextInput
          label="Case"
          description="such as a case number; no personal data"
          w={290}
          maxLength={100}
          value={caseRef}
          error={mistake}
          onChange={(event) => setCase(event.currentTarget.value)}
        />
        <BoundField label="From" hint="empty: from the beginning" value={start} onChange={setStart} />
        <BoundField label="To" hint="excluded; empty: open" value={end} onChange={setEnd} />
      </div>
      <Checkbox.Group
        aria-label="Signals"
        value={[...signals]}
        onChange={setSignals}
        error={signals.length === 0 ? 'Choose a signal.' : null}
      >
        <div className="row section-row">
          {signalNames.map((signal) => (
            <Checkbox key={signal} value={signal} label={signal} />
          ))}
        </div>
      </Checkbox.Group>
      <ActButton loading={isPending}>Place the hold</ActButton>
      {error !== null && <Failure error={error} what="The hold was not placed" />}
    </form>
  )
}
