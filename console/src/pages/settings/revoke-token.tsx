// Revokes a token. It stops at once and for good, so the page first lists the tokens that were made with it,
// which may end too.

import { Button, Radio } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { tenancyOperations } from '../../../../contract/operations/tenancy.ts'
import type { AccessToken } from '../../../../contract/organisation/tenancy.ts'
import { call } from '../../api/client.ts'
import { descendantsQuery } from '../../api/organisation.ts'
import { useMe } from '../../api/session.ts'
import { ActButton } from '../../ui/act-button.tsx'
import { Failure, Loading } from '../../ui/states.tsx'
import { countOf } from '../../ui/units.ts'

export function RevokeToken({ token }: { readonly token: AccessToken }) {
  const { role } = useMe()
  const [isOpen, setOpen] = useState(false)
  const [ended, setEnded] = useState<string | null>(null)
  if (ended !== null) return <p role="status">{ended}</p>
  if (token.role === 'owner' && role !== 'owner') {
    return <p className="muted">Only an owner can revoke an owner token.</p>
  }
  if (!isOpen) {
    return (
      <Button variant="outline" color="red" onClick={() => setOpen(true)}>
        Revoke {token.name} …
      </Button>
    )
  }
  return <Confirm token={token} onCancel={() => setOpen(false)} onEnded={setEnded} />
}

interface ConfirmProps {
  readonly token: AccessToken
  readonly onCancel: () => void
  readonly onEnded: (says: string) => void
}

function Confirm({ onCancel, onEnded, token }: ConfirmProps) {
  const { role, token_id: ownId } = useMe()
  const [withBelow, setWithBelow] = useState(false)
  const below = useQuery(descendantsQuery(token.id))
  const revoking = useRevoke(token, withBelow, onEnded)
  if (below.data === undefined) {
    return below.error === null ? (
      <Loading height={80} label="Reading what was made with it" />
    ) : (
      <Failure
        error={below.error}
        what="What was made with it could not be read"
        onRetry={() => void below.refetch()}
      />
    )
  }
  const made = below.data.items
  const hasMore = below.data.next_cursor !== null
  const isOwn = [token, ...(withBelow ? made : [])].some(({ id }) => id === ownId)
  const mayEndAll = role === 'owner' || made.every((one) => one.role !== 'owner')
  const count = 1 + (withBelow ? made.length : 0)
  return (
    <div className="confirm">
      <p>
        <strong>{token.name}</strong> stops working at once, and can’t be restored.
      </p>
      {made.length === 0 ? (
        <p>No working token was made with it.</p>
      ) : (
        <>
          <Descendants tokens={made} hasMore={hasMore} />
          <Radio.Group
            aria-label="What was made with it"
            value={withBelow ? 'end' : 'keep'}
            onChange={(value) => setWithBelow(value === 'end')}
          >
            <Radio value="keep" label="keep them: they continue to work" />
            {mayEndAll ? (
              <Radio value="end" label="revoke them too: choose this where the secret has leaked" />
            ) : (
              <p className="muted">Only an owner can revoke them too: one of them is an owner token.</p>
            )}
          </Radio.Group>
        </>
      )}
      {isOwn && (
        <p>
          <strong>You are signed in with {token.id === ownId ? 'it' : 'one of them'}:</strong> your session
          ends too.
        </p>
      )}
      <div className="row">
        <ActButton color="red" loading={revoking.isPending} onAct={() => revoking.mutate()}>
          Revoke {withBelow && hasMore ? 'all of them' : countOf(count, 'token')}
        </ActButton>
        <Button variant="default" onClick={onCancel}>
          Cancel
        </Button>
      </div>
      {revoking.error !== null && <Failure error={revoking.error} what="Nothing was revoked" />}
    </div>
  )
}

function useRevoke(token: AccessToken, withBelow: boolean, onEnded: (says: string) => void) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: () =>
      call(tenancyOperations.revokeToken, {
        params: { token_id: token.id },
        query: withBelow ? { descendants: 'true' } : {},
      }),
    onSuccess: ({ revoked_descendants }) => {
      const more = revoked_descendants === 0 ? '' : `, with ${countOf(revoked_descendants, 'token')} below it`
      onEnded(`${token.name} is revoked${more}.`)
      return client.invalidateQueries({ queryKey: ['tokens'] })
    },
  })
}

interface DescendantsProps {
  readonly tokens: readonly AccessToken[]
  readonly hasMore: boolean
}

function Descendants({ hasMore, tokens }: DescendantsProps) {
  return (
    <>
      <p>
        {hasMore ? 'More than ' : ''}
        {countOf(tokens.length, 'working token was', 'working tokens were')} made with it, directly or through
        others:
      </p>
      <ul className="descendants">
        {tokens.map(({ id, name, prefix, role }) => (
          <li key={id}>
            {name} <span className="muted">{role}</span> <code>{prefix}…</code>
          </li>
        ))}
      </ul>
    </>
  )
}
