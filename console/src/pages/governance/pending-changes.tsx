// Shorter retention that waits for a second person, with the decision where the reader may take it.

import { TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { RetentionChange } from '../../../../contract/deletion/governance.ts'
import { retentionOperations } from '../../../../contract/operations/governance.ts'
import { call } from '../../api/client.ts'
import { useMay, useMe } from '../../api/session.ts'
import { ActButton } from '../../ui/act-button.tsx'
import { Instant } from '../../ui/instant.tsx'
import { Failure, Notice } from '../../ui/states.tsx'
import { retained } from './retention-change.ts'

export function PendingChanges({ changes }: { readonly changes: readonly RetentionChange[] }) {
  return changes.map((change) => <PendingChange key={change.id} change={change} />)
}

function PendingChange({ change }: { readonly change: RetentionChange }) {
  const { requester } = useMe()
  const may = useMay(retentionOperations.approveChange)
  const rules = retained.flatMap((signal) => {
    const days = change[`${signal}_days`]
    return days === undefined ? [] : [`${signal} ${days} days`]
  })
  return (
    <Notice title={`A shorter rule waits for a second person: ${rules.join(', ')}`} kind="warn">
      <p>
        Asked for <Instant at={change.requested_at} /> by <span className="break">{change.requested_by}</span>
        . It expires <Instant at={change.approve_by} offset />.
      </p>
      {change.requested_by === requester ? (
        <p>You asked for it, so somebody else has to decide.</p>
      ) : (
        may && <Decide change={change} />
      )}
    </Notice>
  )
}

function Decide({ change }: { readonly change: RetentionChange }) {
  const client = useQueryClient()
  const [reason, setReason] = useState('')
  const [mistake, setMistake] = useState<string | null>(null)
  const params = { change_id: change.id }
  const { error, isPending, mutate } = useMutation({
    mutationFn: (isApproved: boolean) =>
      isApproved
        ? call(retentionOperations.approveChange, { params })
        : call(retentionOperations.rejectChange, { params, body: { reason: reason.trim() } }),
    onSettled: () => client.invalidateQueries(),
  })
  const reject = () => {
    setMistake(reason.trim() === '' ? 'Say why.' : null)
    if (reason.trim() !== '') mutate(false)
  }
  return (
    <>
      <div className="row">
        <ActButton color="red" loading={isPending} onAct={() => mutate(true)}>
          Approve, and erase what is older
        </ActButton>
      </div>
      <div className="fields">
        <TextInput
          label="Reason to reject it"
          description="It is recorded; no personal data"
          w={360}
          maxLength={500}
          value={reason}
          error={mistake}
          onChange={(event) => setReason(event.currentTarget.value)}
        />
        <ActButton variant="default" loading={isPending} className="under-label" onAct={reject}>
          Reject
        </ActButton>
      </div>
      {error !== null && <Failure error={error} what="It was not decided" />}
    </>
  )
}
