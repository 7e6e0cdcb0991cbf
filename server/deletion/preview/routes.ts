// POST /usage/storage/deletions/preview: counts what a deletion would erase. It takes the body of the
// deletion, so that a client can send the same body to both, and changes nothing.

import type { FastifyInstance } from 'fastify'
import { DeletionPreview, PreviewDeletion } from '../../../contract/deletion.ts'
import { route } from '../../http/route.ts'
import { crossFieldProblems, selectionIn } from '../requests/draft.ts'
import type { Previews } from './preview.ts'

/** Each preview reads a column of everything selected. A person tries a few ranges before requesting one. */
const rate = { perMinute: 20, burst: 20 }

export function addPreviewRoute(http: FastifyInstance, previews: Previews): void {
  route(http, {
    method: 'POST',
    url: '/usage/storage/deletions/preview',
    access: ['owner', 'admin'],
    tag: 'Deletion',
    summary: 'Count what a deletion would erase, without erasing anything',
    rate: rate,
    body: PreviewDeletion,
    result: DeletionPreview,
    refusals: [400, 413, 415],
    usesReserve: true,
    check: (body, caller) => crossFieldProblems(body, caller.tenantId),
    handle: async ({ caller, body }) => ({ body: await previews.create(caller, selectionIn(body)) }),
  })
}
