// Access tokens of the organisation: name, role, age and descendants of each; creating, replacing and
// revoking them. A secret is shown once, and never in the address.

import { Button, NativeSelect } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { tenancyOperations } from '../../../../contract/operations/tenancy.ts'
import { tokensQuery } from '../../api/organisation.ts'
import { useMay } from '../../api/session.ts'
import { useAddress } from '../../ui/address.ts'
import { More } from '../../ui/more.tsx'
import { Failure, Forbidden, Loading, Notice, useOnceRead } from '../../ui/states.tsx'
import { CreateTokenForm } from './create-token-form.tsx'
import type { NewToken } from './make-token.ts'
import { NewSecret } from './new-secret.tsx'
import { TokenTable } from './token-table.tsx'

export function TokensPage() {
  const may = useMay(tenancyOperations.listTokens)
  if (!may) return <Forbidden operation={tenancyOperations.listTokens} what="reading access tokens" />
  return <Tokens />
}

const states = [
  { value: '', label: 'that work' },
  { value: 'ended', label: 'that have ended' },
  { value: 'all', label: 'all' },
] as const

const activeIn: Readonly<Record<string, 'true' | 'false' | undefined>> = { '': 'true', ended: 'false' }

function Tokens() {
  const [{ below, show = '' }, change] = useAddress()
  const [made, setMade] = useState<NewToken | null>(null)
  const isListed = useOnceRead(useTokens())
  return (
    <>
      <h2>Access tokens</h2>
      {made !== null && <NewSecret key={made.made.id} token={made} onDone={() => setMade(null)} />}
      <div className="row">
        <NativeSelect
          aria-label="Tokens"
          value={show}
          data={[...states]}
          onChange={(event) => change({ show: event.currentTarget.value || undefined }, { isStep: true })}
        />
        {below !== undefined && (
          <>
            <span>
              made with <code>{below}</code>
            </span>
            <Button variant="subtle" onClick={() => change({ below: undefined }, { isStep: true })}>
              Show every token
            </Button>
          </>
        )}
      </div>
      <TokenList onMade={setMade} />
      {isListed && <CreateTokenForm onMade={setMade} />}
    </>
  )
}

/** The tokens that the address asks for. */
function useTokens() {
  const [{ below, show = '' }] = useAddress()
  return useInfiniteQuery(tokensQuery({ active: activeIn[show], descendants_of: below }))
}

function TokenList({ onMade }: { readonly onMade: (token: NewToken) => void }) {
  const [{ below, open = null, show = '' }, change] = useAddress()
  const pages = useTokens()
  const { data, error, refetch } = pages
  if (data === undefined) {
    return error === null ? (
      <Loading height={240} label="Reading the tokens" />
    ) : (
      <Failure error={error} what="The tokens could not be read" onRetry={() => void refetch()} />
    )
  }
  const tokens = data.pages.flatMap(({ items }) => items)
  if (tokens.length === 0) {
    return (
      <Notice title={show === 'ended' ? 'No token has ended' : 'No such token'}>
        {below === undefined
          ? 'Tokens stay listed after their end.'
          : 'Nothing else was made with this token.'}
      </Notice>
    )
  }
  return (
    <>
      <TokenTable
        tokens={tokens}
        open={open}
        onOpen={(id) => change({ open: id ?? undefined })}
        onDescendants={(id) => change({ below: id, open: undefined }, { isStep: true })}
        onMade={onMade}
      />
      <More pages={pages} what="tokens" />
    </>
  )
}
