// Access tokens, one line each, which opens to all facts and to what can be done with the token.

import { Fragment } from 'react'
import type { AccessToken } from '../../../../contract/organisation/tenancy.ts'
import { nowMs } from '../../clock.ts'
import { Instant } from '../../ui/instant.tsx'
import { agoText } from '../../ui/instants.ts'
import { Table } from '../../ui/table.tsx'
import { countText } from '../../ui/units.ts'
import type { NewToken } from './make-token.ts'
import { TokenDetails } from './token-details.tsx'
import { stateOf } from './token-state.ts'

interface TokenTableProps {
  readonly tokens: readonly AccessToken[]
  /** The id of the token that is open. */
  readonly open: string | null
  readonly onOpen: (id: string | null) => void
  readonly onDescendants: (id: string) => void
  readonly onMade: (token: NewToken) => void
}

const columns = [
  'name',
  'role',
  'secret',
  'last used',
  'works until',
  'made by',
  { number: 'made with it' },
] as const

export function TokenTable({ onDescendants, onMade, onOpen, open, tokens }: TokenTableProps) {
  return (
    <Table label="Access tokens" className="tokens" columns={columns}>
      {tokens.map((token) => {
        const isOpen = token.id === open
        return (
          <Fragment key={token.id}>
            <Row token={token} isOpen={isOpen} onOpen={() => onOpen(isOpen ? null : token.id)} />
            {isOpen && (
              <tr>
                <td colSpan={columns.length}>
                  <TokenDetails token={token} onDescendants={() => onDescendants(token.id)} onMade={onMade} />
                </td>
              </tr>
            )}
          </Fragment>
        )
      })}
    </Table>
  )
}

interface RowProps {
  readonly token: AccessToken
  readonly isOpen: boolean
  readonly onOpen: () => void
}

function Row({ isOpen, onOpen, token }: RowProps) {
  const { created_by, last_used_at, live_descendants, made_with, name, prefix, role } = token
  return (
    <tr>
      <th scope="row" className="break">
        <button
          type="button"
          className="cell-button opener"
          aria-expanded={isOpen}
          data-opens
          onClick={onOpen}
        >
          <span aria-hidden="true">{isOpen ? '▾' : '▸'}</span> {name}
        </button>
      </th>
      <td>{role}</td>
      <td className="mono">{prefix === '' ? '–' : `${prefix}…`}</td>
      <td>
        {last_used_at === null ? (
          <span className="muted">never</span>
        ) : (
          <time dateTime={last_used_at} title={last_used_at}>
            {agoText(last_used_at, nowMs())}
          </time>
        )}
      </td>
      <td>
        <Until token={token} />
      </td>
      <td className="break" title={created_by}>
        {made_with === null ? created_by : created_by.replace(` (${made_with})`, '')}
      </td>
      <td className="number">{live_descendants === 0 ? '–' : countText(live_descendants)}</td>
    </tr>
  )
}

function Until({ token }: { readonly token: AccessToken }) {
  const state = stateOf(token)
  if (state !== 'works') {
    return (
      <span className="status" data-kind="danger">
        {state}
      </span>
    )
  }
  return token.expires_at === null ? 'no end' : <Instant at={token.expires_at} />
}
