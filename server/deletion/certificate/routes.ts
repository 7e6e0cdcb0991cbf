// GET of a deletion's certificate, as JSON or as a page to print. It is issued at the first call; later calls
// return the same bytes.

import type { FastifyInstance } from 'fastify'
import { type CertificateAnswer, jwksUri } from '../../../contract/deletion/certificate.ts'
import { deletionOperations } from '../../../contract/operations/deletions.ts'
import { prefersHtml } from '../../http/pages/prefers-html.ts'
import { serve } from '../../http/serve.ts'
import { pagePolicy, renderPage } from './page.ts'
import type { CertificateStore } from './store.ts'

export function addCertificateRoute(http: FastifyInstance, store: CertificateStore): void {
  serve(http, deletionOperations.certificate, {
    handle: async ({ accept, caller, params, query }) => {
      const issued = await store.issue(caller.tenantId, params.request_id, caller.requester)
      const isPage = query.format === undefined ? prefersHtml(accept) : query.format === 'html'
      const body: CertificateAnswer = {
        request_id: params.request_id,
        issued_at: issued.certificate.issued_at,
        certificate: issued.certificate,
        jws: issued.jws,
        jwks_uri: jwksUri,
      }
      if (!isPage) return { headers: { vary: 'accept' }, body }
      return {
        headers: {
          vary: 'accept',
          'content-security-policy': pagePolicy,
          // As the console's page has it: otherwise the window that the console opens could not be printed.
          'cross-origin-opener-policy': 'same-origin',
        },
        body,
        html: renderPage(issued),
      }
    },
  })
}
