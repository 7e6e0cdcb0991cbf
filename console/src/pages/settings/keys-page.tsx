// The public keys that verify certificates and checkpoints. A person with a copy can check them without the
// service.

import { useQuery } from '@tanstack/react-query'
import { auditOperations } from '../../../../contract/operations/audit.ts'
import { signingKeysQuery } from '../../api/organisation.ts'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Failure, Loading, Notice } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'

export function KeysPage() {
  const { data, error, refetch } = useQuery(signingKeysQuery)
  return (
    <>
      <h2>Signing keys</h2>
      <p>
        Certificates and checkpoints are signed with the newest key. Retired keys stay listed, so that older
        signatures can still be checked.
      </p>
      {data === undefined ? (
        error === null ? (
          <Loading height={120} label="Reading the keys" />
        ) : (
          <Failure error={error} what="The keys could not be read" onRetry={() => void refetch()} />
        )
      ) : data.keys.length === 0 ? (
        <Notice title="Nothing was signed yet">The first key is made with the first signature.</Notice>
      ) : (
        <>
          <Table label="Signing keys" columns={['key id', 'algorithm', 'public key', 'use']}>
            {data.keys.map(({ alg, crv, kid, x }, i) => (
              <tr key={kid}>
                <th scope="row" className="mono">
                  {kid}
                </th>
                <td>
                  {alg}, {crv}
                </td>
                <td className="mono">{x}</td>
                <td>{i === 0 ? 'signs now' : 'retired'}</td>
              </tr>
            ))}
          </Table>
          <div className="row under-table">
            <CopyButton text={JSON.stringify(data, null, 2)} label="Copy as a JWK Set" />
            <a href={auditOperations.signingKeys.path}>Open as JSON</a>
          </div>
          <p className="muted">
            Keep a copy outside this service: somebody who could change the service could also change this
            list. A key is made and retired by the operator.
          </p>
        </>
      )}
    </>
  )
}
