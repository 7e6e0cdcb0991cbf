// Legal holds: what may not be erased until somebody releases it. Those in force come first; released ones
// stay as a record.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useState } from 'react'
import type { LegalHold } from '../../../../contract/deletion/governance.ts'
import { holdOperations } from '../../../../contract/operations/governance.ts'
import { call } from '../../api/client.ts'
import { holdsQuery } from '../../api/governance.ts'
import { useMay } from '../../api/session.ts'
import { ActButton } from '../../ui/act-button.tsx'
import { useAddress } from '../../ui/address.ts'
import { Instant } from '../../ui/instant.tsx'
import { shortActor, shortId } from '../../ui/short-ids.ts'
import { Failure, Forbidden, Loading, Notice, useOnceRead } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { PlaceHoldForm } from './place-hold-form.tsx'

export function HoldsPage() {
  const may = useMay(holdOperations.list)
  return (
    <>
      <h1>Legal holds</h1>
      {may ? <Holds /> : <Forbidden operation={holdOperations.list} what="reading legal holds" />}
    </>
  )
}

function Holds() {
  const { data, error, refetch } = useQuery(holdsQuery)
  const isListed = useOnceRead({ data, error })
  const held = data?.items.toSorted((one, other) => order(one) - order(other)) ?? []
  return (
    <>
      <p className="muted">
        What a hold covers is not erased, by anybody. A deletion that meets a hold waits, and continues when
        the hold is released.
      </p>
      {data === undefined ? (
        error === null ? (
          <Loading height={200} label="Reading the holds" />
        ) : (
          <Failure error={error} what="The holds could not be read" onRetry={() => void refetch()} />
        )
      ) : held.length === 0 ? (
        <Notice title="No legal hold was ever placed">Everything may be erased.</Notice>
      ) : (
        <HoldTable holds={held} />
      )}
      {isListed && <PlaceHoldForm />}
    </>
  )
}

const order = ({ released_at }: LegalHold) => (released_at === null ? 0 : 1)

function HoldTable({ holds }: { readonly holds: readonly LegalHold[] }) {
  const [{ hold: named }] = useAddress()
  /** Of the hold that the address names: a link to it brings it into view. */
  const show = useCallback((row: HTMLTableRowElement | null) => row?.scrollIntoView({ block: 'center' }), [])
  return (
    <Table label="Legal holds" columns={['case', 'signals', 'from', 'to', 'placed', 'by', 'state']}>
      {holds.map((hold) => (
        <tr key={hold.id} {...(hold.id === named && { ref: show, 'aria-current': true })}>
          <th scope="row" className="hold-case" title={hold.id}>
            {hold.case_ref}
            <div className="mono muted nowrap">{shortId(hold.id)}</div>
          </th>
          <td>{hold.signals.length === 3 ? 'all' : hold.signals.join(', ')}</td>
          <td className="nowrap">
            {hold.range_start === null ? 'the beginning' : <Instant at={hold.range_start} />}
          </td>
          <td>{hold.range_end === null ? 'open' : <Instant at={hold.range_end} />}</td>
          <td>
            <Instant at={hold.placed_at} />
          </td>
          <td className="nowrap" title={hold.placed_by}>
            {shortActor(hold.placed_by)}
          </td>
          <td>
            {hold.released_at === null ? (
              <Release hold={hold} />
            ) : (
              <span title={hold.released_by ?? ''}>
                released <Instant at={hold.released_at} />
              </span>
            )}
          </td>
        </tr>
      ))}
    </Table>
  )
}

/** Asks once more, because what waits for the release is then erased. */
function Release({ hold }: { readonly hold: LegalHold }) {
  const client = useQueryClient()
  const [isSure, setSure] = useState(false)
  const { error, isPending, mutate } = useMutation({
    mutationFn: () => call(holdOperations.release, { params: { hold_id: hold.id } }),
    onSuccess: () => client.invalidateQueries(),
  })
  return (
    <>
      <ActButton
        variant="outline"
        size="compact-sm"
        color={isSure ? 'red' : 'blue'}
        loading={isPending}
        onAct={() => (isSure ? mutate() : setSure(true))}
        label={`${isSure ? 'Release now' : 'Release'}: ${hold.case_ref}`}
      >
        {isSure ? 'Release now' : 'Release …'}
      </ActButton>
      {isSure && <div className="muted">Erasures that wait for it continue.</div>}
      {error !== null && <div role="alert">{error.message}</div>}
    </>
  )
}
