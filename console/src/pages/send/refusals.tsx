// Refused requests with tokens of this organisation, and the meaning of each refusal. A request without a
// valid token belongs to no organisation, so the page says that it is not listed.

import { useQuery } from '@tanstack/react-query'
import { usageOperations } from '../../../../contract/operations/usage.ts'
import type { Refusal } from '../../../../contract/organisation/refusals.ts'
import { refusalsQuery } from '../../api/sending.ts'
import { useMay } from '../../api/session.ts'
import { Instant } from '../../ui/instant.tsx'
import { Failure, Forbidden, Loading } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { countText } from '../../ui/units.ts'

export function Refusals() {
  const may = useMay(usageOperations.refusals)
  return (
    <section className="section">
      <h2>Refused</h2>
      <p className="muted">
        A request without a token, or with one that this service does not know, belongs to no organisation and
        is not listed: your sender then sees a 401. Refusals are kept for a day, and not over a restart.
      </p>
      {may ? <Refused /> : <Forbidden operation={usageOperations.refusals} what="reading refusals" />}
    </section>
  )
}

function Refused() {
  const { data, error, refetch } = useQuery(refusalsQuery)
  if (data === undefined) {
    return error === null ? (
      <Loading height={80} label="Reading refusals" />
    ) : (
      <Failure error={error} what="Refusals could not be read" onRetry={() => void refetch()} />
    )
  }
  if (data.items.length === 0) {
    return (
      <p>
        Nothing was refused since <Instant at={data.since} />.
      </p>
    )
  }
  return (
    <Table
      label="Refused requests"
      className="refusals"
      columns={[{ number: 'times' }, 'status', 'what it means', 'request', 'token', 'last']}
    >
      {data.items.map((refusal) => (
        <RefusalRow key={keyOf(refusal)} refusal={refusal} />
      ))}
    </Table>
  )
}

function keyOf({ code, method, path, protocol, status, token }: Refusal): string {
  return JSON.stringify([code, status, protocol, method, path, token?.id])
}

function RefusalRow({ refusal }: { readonly refusal: Refusal }) {
  const { code, count, last_at, meaning, method, path, protocol, status, token } = refusal
  return (
    <tr>
      <td className="number">{countText(count)}</td>
      <td className="nowrap">
        {status} <code>{code}</code>
      </td>
      <td>{meaning}</td>
      <td className="mono">{protocol === 'grpc' ? `gRPC ${path}` : `${method} ${path}`}</td>
      <td className="break">{token?.name ?? '–'}</td>
      <td>
        <Instant at={last_at} />
      </td>
    </tr>
  )
}
