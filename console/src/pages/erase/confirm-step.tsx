// The last step: the typed word, and the button with the number of rows that it erases. After a refusal all
// input stays; a changed count is shown with the old one and must be confirmed again.

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import type { DeletionPreview } from '../../../../contract/deletion/requests.ts'
import { deletionOperations } from '../../../../contract/operations/deletions.ts'
import { call, Refusal } from '../../api/client.ts'
import { useMe } from '../../api/session.ts'
import { dropCachedAmounts } from '../../api/storage.ts'
import { ActButton } from '../../ui/act-button.tsx'
import { Failure } from '../../ui/states.tsx'
import { mistakeInWord, TypedWord } from '../../ui/typed-word.tsx'
import { countOf } from '../../ui/units.ts'
import { ChangedCount } from './changed-count.tsx'
import { newKey } from './idempotency-key.ts'
import { type Confirmation, requestBody, type Selection } from './selection.ts'
import type { Preview } from './use-preview.ts'

interface ConfirmStepProps {
  readonly selection: Selection
  readonly note: string
  readonly preview: Preview
  readonly problem: string | null
}

export function ConfirmStep({ note, preview, problem, selection }: ConfirmStepProps) {
  const { tenant_id: organisation } = useMe()
  const [word, setWord] = useState('')
  const [mistake, setMistake] = useState<string | null>(null)
  const [before, setBefore] = useState<DeletionPreview | null>(null)
  const request = useErase(selection, (changed) => {
    setBefore(preview.data ?? null)
    preview.replace(changed)
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const found = mistakeIn({ word, organisation, problem, preview })
    setMistake(found)
    if (found !== null || preview.data === undefined) return
    setBefore(null)
    request.mutate({ confirm: word, note, previewId: preview.data.id })
  }
  const isStale = request.error instanceof Refusal && request.error.code === 'preview_stale'
  return (
    <form onSubmit={submit} aria-labelledby="confirm">
      <h2 id="confirm">5 Confirm</h2>
      {before !== null && preview.data !== undefined && isStale && (
        <ChangedCount before={before} after={preview.data} />
      )}
      <TypedWord
        act="erase"
        word={word}
        mistake={mistake}
        onChange={(typed) => {
          setWord(typed)
          setMistake(null)
        }}
      />
      <div className="fields">
        <ActButton color="red" loading={request.isPending}>
          {buttonText(selection, preview)}
        </ActButton>
        <Link to="/$organisation/storage" params={{ organisation }} className="cancel">
          Cancel
        </Link>
      </div>
      {request.error !== null && !isStale && (
        <Failure error={request.error} what="Nothing was erased: the request was refused" />
      )}
    </form>
  )
}

/**
 * Sends the request; the same selection and note have the same key, so that a repeat erases nothing twice.
 */
function useErase(selection: Selection, onChanged: (preview: DeletionPreview) => void) {
  const { tenant_id: organisation } = useMe()
  const navigate = useNavigate()
  const client = useQueryClient()
  const [keys] = useState(() => new Map<string, string>())
  return useMutation({
    mutationFn: (confirmation: Confirmation) => {
      const body = requestBody(selection, confirmation)
      const { preview_id: _, ...meant } = body
      const text = JSON.stringify(meant)
      const key = keys.get(text) ?? newKey()
      keys.set(text, key)
      return call(deletionOperations.create, { body, headers: { 'idempotency-key': key } })
    },
    onSuccess: async ({ request_id: requestId }) => {
      dropCachedAmounts(client)
      await navigate({ to: '/$organisation/erasures/$requestId', params: { organisation, requestId } })
    },
    onError: (error) => {
      const isStale = error instanceof Refusal && error.code === 'preview_stale'
      if (isStale) onChanged((error.body as { readonly preview: DeletionPreview }).preview)
    },
  })
}

interface Given {
  readonly word: string
  readonly organisation: string
  readonly problem: string | null
  readonly preview: Preview
}

function mistakeIn({ organisation, preview, problem, word }: Given): string | null {
  if (problem !== null) return problem
  if (preview.data === undefined || preview.isOld) return 'Wait until it is counted.'
  return mistakeInWord(word, organisation)
}

function buttonText({ delayMinutes }: Selection, { data }: Preview): string {
  const verb = delayMinutes > 0 ? 'Hide, and erase later,' : 'Erase'
  if (data === undefined) return verb.replace(/,$/, '')
  if (data.needs_approval) return `Ask to erase ${countOf(data.rows, 'row')}`
  return `${verb} ${countOf(data.rows, 'row')}`
}
