// The certificate of a completed erasure: checked in this browser against the published keys, and shown,
// printed or downloaded.

import { useQuery } from '@tanstack/react-query'
import type { DeletionRequest } from '../../../../contract/deletion/requests.ts'
import { requestPath } from '../../../../contract/operation.ts'
import { auditOperations } from '../../../../contract/operations/audit.ts'
import { deletionOperations } from '../../../../contract/operations/deletions.ts'
import { call } from '../../api/client.ts'
import { Failure, Loading } from '../../ui/states.tsx'
import { checkCertificate } from './check-certificate.ts'

export function Certificate({ request }: { readonly request: DeletionRequest }) {
  const { request_id: requestId, verified_at } = request
  const params = { request_id: requestId }
  const { data, error, refetch } = useQuery({
    queryKey: ['certificate', requestId, verified_at],
    queryFn: async ({ signal }) => {
      const [answer, keys] = await Promise.all([
        call(deletionOperations.certificate, { params, query: { format: 'json' }, signal }),
        call(auditOperations.signingKeys, { signal }),
      ])
      return { answer, check: await checkCertificate(answer, keys, request) }
    },
    staleTime: Number.POSITIVE_INFINITY,
  })
  const path = (format: string) => requestPath(deletionOperations.certificate, params, { format })
  return (
    <section className="section">
      <h2>Certificate</h2>
      {error !== null ? (
        <Failure error={error} what="The certificate could not be read" onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <Loading height={70} label="Reading the certificate" />
      ) : (
        <>
          <CheckLine check={data.check} />
          <div className="row">
            <a href={path('html')} target="_blank" rel="noreferrer">
              View
            </a>
            <button type="button" className="cell-button link-button" onClick={() => print(path('html'))}>
              Print
            </button>
            <a href={path('json')} download={`${requestId}.certificate.json`}>
              Download (JSON)
            </a>
            <a href={auditOperations.signingKeys.path} download="lethe-jwks.json">
              Download the keys
            </a>
          </div>
          <p className="muted">
            Anybody can check it without this service:{' '}
            <code>./lethe certificate verify {requestId}.certificate.json --jwks lethe-jwks.json</code>
          </p>
        </>
      )}
    </section>
  )
}

/** Prints the certificate from a window of its own, which stays open to be read. */
function print(path: string): void {
  const opened = window.open(path)
  opened?.addEventListener('load', () => opened.print(), { once: true })
}

type Check = Awaited<ReturnType<typeof checkCertificate>>

function CheckLine({ check }: { readonly check: Check }) {
  if (check.kind === 'valid') {
    return (
      <p>
        <span className="status" data-kind="ok">
          valid
        </span>{' '}
        Signed by key <code title={check.keyId}>{check.keyId.slice(0, 8)}…</code>, checked in this browser. It
        states the range and the three times that this page shows.
      </p>
    )
  }
  if (check.kind === 'no_crypto') {
    return (
      <p>
        <span className="status" data-kind="warn">
          not checked here
        </span>{' '}
        Browsers check signatures only over https and on the machine itself. Use the command below.
      </p>
    )
  }
  return (
    <p role="alert">
      <span className="status" data-kind="danger">
        not valid
      </span>{' '}
      {check.reason}
    </p>
  )
}
