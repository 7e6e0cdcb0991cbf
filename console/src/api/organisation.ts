// The queries of the settings: the organisation, its access tokens, the policy of a second person, and the
// keys that sign.

import { queryOptions } from '@tanstack/react-query'
import { auditOperations } from '../../../contract/operations/audit.ts'
import { policyOperations } from '../../../contract/operations/governance.ts'
import { tenancyOperations } from '../../../contract/operations/tenancy.ts'
import { call } from './client.ts'
import { pagedQuery } from './cursor-pages.ts'

export const organisationQuery = queryOptions({
  queryKey: ['organisation'],
  queryFn: ({ signal }) => call(tenancyOperations.organisation, { signal }),
})

interface TokenFilter {
  readonly active?: 'true' | 'false' | undefined
  /** Only tokens that were made with this one, directly or through others. */
  readonly descendants_of?: string | undefined
}

/** Tokens of a page of the list: two screens. */
const tokensShown = '100'

export function tokensQuery(filter: TokenFilter) {
  return pagedQuery(['tokens', filter], ({ cursor, signal }) =>
    call(tenancyOperations.listTokens, { query: { ...filter, limit: tokensShown, cursor }, signal }),
  )
}

/**
 * The largest number of tokens listed before a revocation; where there are more, only their number is shown.
 */
const descendantsShown = '500'

export function descendantsQuery(tokenId: string) {
  return queryOptions({
    queryKey: ['tokens', 'below', tokenId],
    queryFn: ({ signal }) =>
      call(tenancyOperations.listTokens, {
        query: { active: 'true', descendants_of: tokenId, limit: descendantsShown },
        signal,
      }),
    // It must be current, because the tokens may be revoked next.
    staleTime: 0,
  })
}

export const policyQuery = queryOptions({
  queryKey: ['policy'],
  queryFn: ({ signal }) => call(policyOperations.get, { signal }),
})

export const signingKeysQuery = queryOptions({
  queryKey: ['signing-keys'],
  queryFn: ({ signal }) => call(auditOperations.signingKeys, { signal }),
})

/** How many lines of tokens can approve: working tokens of owners and admins that the operator made. */
export const possibleApproversQuery = queryOptions({
  queryKey: ['tokens', 'approvers'],
  queryFn: async ({ signal }) => {
    const { items } = await call(tenancyOperations.listTokens, {
      query: { active: 'true', limit: descendantsShown },
      signal,
    })
    return items.filter(({ made_with, role }) => made_with === null && (role === 'owner' || role === 'admin'))
      .length
  },
})
