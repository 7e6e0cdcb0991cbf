// One token in full: where it comes from, what was made with it, and its replacement and end.

import type { ReactNode } from 'react'
import type { AccessToken } from '../../../../contract/organisation/tenancy.ts'
import { useMe } from '../../api/session.ts'
import { Instant } from '../../ui/instant.tsx'
import { countOf } from '../../ui/units.ts'
import type { NewToken } from './make-token.ts'
import { RevokeToken } from './revoke-token.tsx'
import { roleTexts } from './role-texts.ts'
import { RotateToken } from './rotate-token.tsx'
import { stateOf } from './token-state.ts'

interface TokenDetailsProps {
  readonly token: AccessToken
  readonly onDescendants: () => void
  readonly onMade: (token: NewToken) => void
}

export function TokenDetails({ onDescendants, onMade, token }: TokenDetailsProps) {
  const { token_id: ownId } = useMe()
  const { created_at, created_by, id, live_descendants, made_with, role } = token
  return (
    <div className="entry-details">
      {id === ownId && <p>You are signed in with this token.</p>}
      <dl className="facts">
        <dt>Id</dt>
        <dd>
          <code>{id}</code>
        </dd>
        <dt>May do</dt>
        <dd>{roleTexts[role]}</dd>
        <dt>Made</dt>
        <dd>
          <Instant at={created_at} offset /> by <span className="break">{created_by}</span>
        </dd>
        <dt>Made with</dt>
        <dd>{made_with === null ? 'no token: the operator made it' : <code>{made_with}</code>}</dd>
        <Ends token={token} />
        <dt>Made with it</dt>
        <dd>
          {live_descendants === 0 ? (
            'no working token'
          ) : (
            <button type="button" className="cell-button link-button" onClick={onDescendants}>
              Show {countOf(live_descendants, 'working token')}
            </button>
          )}
        </dd>
      </dl>
      <Acts token={token} onMade={onMade} />
    </div>
  )
}

function Ends({
  token: { expires_at, line_expires_at, revoked_at },
}: {
  readonly token: AccessToken
}): ReactNode {
  if (revoked_at !== null) {
    return (
      <>
        <dt>Revoked</dt>
        <dd>
          <Instant at={revoked_at} offset />
        </dd>
      </>
    )
  }
  return (
    <>
      <dt>Works until</dt>
      <dd>{expires_at === null ? 'it is revoked' : <Instant at={expires_at} offset />}</dd>
      {line_expires_at !== null && line_expires_at !== expires_at && (
        <>
          <dt>Makes tokens until</dt>
          <dd>
            <Instant at={line_expires_at} offset />
          </dd>
        </>
      )}
    </>
  )
}

/** An ended token has no replacement; what was made with it can still be revoked. */
function Acts({ onMade, token }: Pick<TokenDetailsProps, 'token' | 'onMade'>) {
  const isOver = stateOf(token) !== 'works'
  if (isOver && token.live_descendants === 0) return null
  return (
    <div className="acts">
      {!isOver && <RotateToken token={token} onMade={onMade} />}
      <RevokeToken token={token} />
    </div>
  )
}
