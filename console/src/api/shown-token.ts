// The access token that this page shows, by its id. All windows of a browser share the session cookie, so a
// sign-in in another window changes who the requests of this page would act as. A page shows one token as
// long as it lives and names it in each request, so that the service refuses to act as another one.

import type { auditOperations } from '../../../contract/operations/audit.ts'
import { shownTokenHeader } from '../../../contract/organisation/session.ts'

let shownId: string | null = null

/** Returns whether the page shows this token. The first one is shown from then on. */
export function showToken(id: string): boolean {
  shownId ??= id
  return shownId === id
}

/** Whether the page shows a token at all. */
export function showsToken(): boolean {
  return shownId !== null
}

/** Names the token that the page shows; empty before it is known. */
export function shownTokenHeaders(): Readonly<Record<string, string>> {
  return shownId === null ? {} : { [shownTokenHeader]: shownId }
}

type Export = (typeof auditOperations)['exportAuditLog' | 'exportLedger']

/** Returns the address of a file for a link, which has no headers: it names the token in its query. */
export function exportAddress({ path }: Export): string {
  return shownId === null ? path : `${path}?${new URLSearchParams({ token_id: shownId })}`
}
