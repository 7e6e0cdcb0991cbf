// Replaces a token: makes one with the same name and role, so that both work until the old one is revoked.

import { Button } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import type { AccessToken } from '../../../../contract/organisation/tenancy.ts'
import { useMe } from '../../api/session.ts'
import { ActButton } from '../../ui/act-button.tsx'
import { Failure } from '../../ui/states.tsx'
import { lifetimeDays, lifetimeOf } from './lifetime.ts'
import { LifetimeField } from './lifetime-field.tsx'
import { lifetimeProblem, type NewToken, useMakeToken } from './make-token.ts'

interface RotateTokenProps {
  readonly token: AccessToken
  readonly onMade: (token: NewToken) => void
}

export function RotateToken({ onMade, token }: RotateTokenProps) {
  const { role } = useMe()
  const [isOpen, setOpen] = useState(false)
  if (token.role === 'owner' && role !== 'owner') {
    return <p className="muted">Only an owner can replace an owner token.</p>
  }
  if (!isOpen) {
    return (
      <Button variant="default" onClick={() => setOpen(true)}>
        Replace {token.name} …
      </Button>
    )
  }
  return <Replace token={token} onMade={onMade} onCancel={() => setOpen(false)} />
}

function Replace({ onCancel, onMade, token }: RotateTokenProps & { readonly onCancel: () => void }) {
  const [lifetime, setLifetime] = useState(() => lifetimeOf(token))
  const making = useMakeToken(token, (made) => {
    onCancel()
    onMade(made)
  })
  const refused = lifetimeProblem(making.error)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (lifetimeDays(lifetime) !== null) making.mutate({ name: token.name, role: token.role, lifetime })
  }
  return (
    <form onSubmit={submit} className="confirm" aria-label={`Replace ${token.name}`}>
      <p>
        A second token with this name and role is made, and both work until you revoke the old one. The new
        one is recorded as made with your token, because you see its secret.
      </p>
      <div className="fields">
        <LifetimeField value={lifetime} error={refused} onChange={setLifetime} />
      </div>
      <div className="row under-fields">
        <ActButton loading={making.isPending}>Create the new token</ActButton>
        <Button variant="default" onClick={onCancel}>
          Cancel
        </Button>
      </div>
      {making.error !== null && refused === null && (
        <Failure error={making.error} what="No new token was created" />
      )}
    </form>
  )
}
