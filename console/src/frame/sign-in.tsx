// Signing in with an access token, or with the one-time code of a link. The secret is sent once, and neither
// the page nor the browser keeps it: it is removed from the address first.

import { Button, PasswordInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { Refusal } from '../api/client.ts'
import { signIn } from '../api/session.ts'
import { RepeatTime } from '../ui/states.tsx'
import { Logo } from './logo.tsx'

/** Removes the code from the address, so that neither history nor a screenshot contains it. */
function takeCode(): string | null {
  const code = new URLSearchParams(window.location.hash.slice(1)).get('code')
  if (code !== null) window.history.replaceState(window.history.state, '', window.location.pathname)
  return code
}

/** The page of the link that the service prints. */
export function SignInPage() {
  const navigate = useNavigate()
  const started = useRef(false)
  const { mutate, error, isPending } = useMutation({
    mutationFn: signIn,
    onSuccess: () => navigate({ to: '/', replace: true }),
  })
  useEffect(() => {
    // Once, although React runs effects twice in development: the code works once.
    const code = started.current ? null : takeCode()
    started.current = true
    if (code !== null) mutate(code)
  }, [mutate])
  const isUsed = error instanceof Refusal && error.status === 401
  return (
    <SignInScreen
      onSignedIn={() => void navigate({ to: '/', replace: true })}
      note={
        isPending
          ? 'Signing you in …'
          : isUsed
            ? 'This link was used before or is too old. Sign in with an access token.'
            : error?.message
      }
    />
  )
}

interface ScreenProps {
  readonly note?: string | undefined
  readonly onSignedIn?: () => void
}

export function SignInScreen({ note, onSignedIn }: ScreenProps) {
  return (
    <main className="sign-in">
      <Logo />
      <h1>Sign in to Lethe</h1>
      {note !== undefined && (
        <p role="status" className="sign-in-note">
          {note}
        </p>
      )}
      <SignInForm {...(onSignedIn && { onSignedIn })} />
      <p className="muted">
        The token is exchanged for a session of this browser, which ends after 12 hours without use, after 7
        days, or with the token. The operator makes a token with
        <code className="block">./lethe token create --org ORGANISATION --role owner</code>
      </p>
    </main>
  )
}

export function SignInForm({ onSignedIn }: { readonly onSignedIn?: () => void }) {
  const [token, setToken] = useState('')
  const [missing, setMissing] = useState(false)
  const { mutate, error, isPending } = useMutation({ mutationFn: signIn, onSuccess: onSignedIn ?? noMore })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setMissing(token.trim() === '')
    if (token.trim() !== '') mutate(token.trim())
  }
  return (
    <form onSubmit={submit} className="sign-in-form">
      <PasswordInput
        label="Access token"
        value={token}
        onChange={(event) => setToken(event.currentTarget.value)}
        autoComplete="current-password"
        spellCheck={false}
        data-autofocus
        error={missing ? 'Paste an access token.' : sentenceOf(error)}
      />
      {error instanceof Refusal && (
        <RepeatTime key={error.requestId} seconds={error.retryAfterSeconds ?? 0} />
      )}
      <Button type="submit" loading={isPending}>
        Sign in
      </Button>
    </form>
  )
}

const noMore = () => undefined

function sentenceOf(error: Error | null): string | null {
  if (!(error instanceof Refusal)) return error === null ? null : error.message
  if (error.code === 'role_not_permitted') return 'This token may only send telemetry; use one that may read.'
  return error.message
}
