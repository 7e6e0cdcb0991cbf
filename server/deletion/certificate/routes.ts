// GET of a deletion's certificate, as JSON or as a page to print. It is issued at the first call; later calls
// return the same bytes.

import type { FastifyInstance } from 'fastify'
import { CertificateAnswer, CertificateQuery, jwksUri } from '../../../contract/certificate.ts'
import { DeletionParams } from '../../../contract/deletion.ts'
import { prefersHtml } from '../../http/pages/prefers-html.ts'
import { route } from '../../http/route.ts'
import { pagePolicy, renderPage } from './page.ts'
import type { CertificateStore } from './store.ts'

/** A client that fetches the certificates of a year does so at one a second. */
const rate = { perMinute: 60, burst: 60 }

export function addCertificateRoute(http: FastifyInstance, store: CertificateStore): void {
  route(http, {
    method: 'GET',
    url: '/usage/storage/deletions/:request_id/certificate',
    access: ['owner', 'admin'],
    tag: 'Evidence',
    summary: 'The signed certificate of a completed deletion, as JSON or as a page to print',
    rate: rate,
    params: DeletionParams,
    query: CertificateQuery,
    result: CertificateAnswer,
    alsoHtml: 'The same as one page, which loads and runs nothing.',
    refusals: [404, 409],
    handle: async ({ caller, params, query, headers }) => {
      const issued = await store.issue(caller.tenantId, params.request_id, caller.requester)
      const isPage = query.format === undefined ? prefersHtml(headers.accept) : query.format === 'html'
      const body: CertificateAnswer = {
        request_id: params.request_id,
        issued_at: issued.certificate.issued_at,
        certificate: issued.certificate,
        jws: issued.jws,
        jwks_uri: jwksUri,
      }
      if (!isPage) return { headers: { vary: 'accept' }, body }
      return {
        headers: { vary: 'accept', 'content-security-policy': pagePolicy },
        body,
        html: renderPage(issued),
      }
    },
  })
}
