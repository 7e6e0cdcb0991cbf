// The secret of a new token, shown once: only this part of the page has it, and it is lost when the page is
// left. Where the token replaces another one, the old one is revoked here.

import { Button } from '@mantine/core'
import { useEffect, useRef } from 'react'
import { nowMs } from '../../clock.ts'
import { CopyButton } from '../../ui/copy-button.tsx'
import { agoText } from '../../ui/instants.ts'
import { Notice } from '../../ui/states.tsx'
import type { NewToken } from './make-token.ts'
import { RevokeToken } from './revoke-token.tsx'

interface NewSecretProps {
  readonly token: NewToken
  readonly onDone: () => void
}

export function NewSecret({ onDone, token: { made, replaces } }: NewSecretProps) {
  const secret = useRef<HTMLElement>(null)
  useEffect(() => secret.current?.focus(), [])
  return (
    <Notice title={`The secret of ${made.name}, shown once`} kind="ok">
      {/* The focus moves here, because the person continues here. */}
      <section ref={secret} tabIndex={-1} className="secret" aria-label="Secret">
        <code>{made.token}</code>
      </section>
      <p>The service stores only its hash: copy it before you leave this page.</p>
      <div className="row">
        <CopyButton text={made.token} />
        <Button variant="default" onClick={onDone}>
          I have stored it
        </Button>
      </div>
      {replaces !== null && (
        <>
          <p>
            Both tokens work now. Put the new one where the old one is used, and then revoke the old one,
            which was last used{' '}
            {replaces.last_used_at === null ? 'never' : agoText(replaces.last_used_at, nowMs())}.
          </p>
          <RevokeToken token={replaces} />
        </>
      )}
    </Notice>
  )
}
