// POST /usage/storage/deletions/preview: counts what a deletion would erase. It takes the body of the
// deletion, so that a client can send the same body to both, and changes nothing.

import type { FastifyInstance } from 'fastify'
import { deletionOperations } from '../../../contract/operations/deletions.ts'
import { serve } from '../../http/serve.ts'
import { readSelection } from '../requests/draft.ts'
import type { Previews } from './preview.ts'

export function addPreviewRoute(http: FastifyInstance, previews: Previews): void {
  serve(http, deletionOperations.preview, {
    usesReserve: true,
    parse: ({ caller, ...sent }) => readSelection(sent, caller.tenantId),
    handle: ({ caller, value }) => previews.answer(caller, value),
  })
}
