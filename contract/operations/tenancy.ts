// The caller, the access tokens of their organisation, and the removal of the organisation.

import { z } from 'zod'
import {
  createdTokenExample,
  createTokenExample,
  meExample,
  organisationExample,
  organisationRemovedExample,
  removeOrganisationExample,
  revokedTokenExample,
  tokenExample,
} from '../examples/organisation.ts'
import { operation } from '../operation.ts'
import {
  AccessToken,
  CreateAccessToken,
  CreatedAccessToken,
  Me,
  Organisation,
  OrganisationRemoved,
  RemoveOrganisation,
  RevokedAccessToken,
  RevokeQuery,
  TokenListQuery,
} from '../organisation/tenancy.ts'
import { administrators, readers, roles } from '../role.ts'
import { pageOf } from '../values/fields.ts'

/**
 * A program that rotates the tokens of a fleet makes as many at once as may be active, and one that makes one
 * for each of its jobs some a minute. Each stays for ever, as a row and an audit entry, and lists follow the
 * lines through those that have ended.
 */
const createRate = { perMinute: 6, burst: 1000 }

/** Each page follows the lines of all active tokens. A program may read the pages of some ten thousand. */
const listRate = { perMinute: 60, burst: 120 }

/** As many at once as an organisation may have: nobody waits while tokens must stop working. */
const revokeRate = { perMinute: 60, burst: 1000 }

/** One succeeds. Others may be an entry in the audit log, which nothing removes, and count all telemetry. */
const removeRate = { perMinute: 10, burst: 10 }

export const tenancyOperations = {
  me: operation({
    id: 'getMe',
    method: 'GET',
    path: '/me',
    access: roles,
    tag: 'Organisation',
    summary: 'Who you are to this service',
    results: { 200: { body: Me, example: meExample } },
  }),
  organisation: operation({
    id: 'getOrganisation',
    method: 'GET',
    path: '/organisation',
    access: readers,
    tag: 'Organisation',
    summary: 'Your organisation: its name, and since when it exists',
    results: { 200: { body: Organisation, example: organisationExample } },
  }),
  listTokens: operation({
    id: 'getTokens',
    method: 'GET',
    path: '/tokens',
    access: administrators,
    tag: 'Organisation',
    summary: 'Access tokens of your organisation, newest first; never their secrets',
    query: TokenListQuery,
    results: { 200: { body: pageOf(AccessToken), example: { items: [tokenExample], next_cursor: null } } },
    rate: listRate,
  }),
  createToken: operation({
    id: 'postTokens',
    method: 'POST',
    path: '/tokens',
    access: administrators,
    tag: 'Organisation',
    summary: 'Create an access token; its secret is only in this response',
    body: CreateAccessToken,
    bodyExample: createTokenExample,
    results: { 201: { body: CreatedAccessToken, example: createdTokenExample } },
    refusals: ['token_line_expired', 'too_many_tokens'],
    rate: createRate,
  }),
  revokeToken: operation({
    id: 'deleteTokensByTokenId',
    method: 'DELETE',
    path: '/tokens/:token_id',
    access: administrators,
    tag: 'Organisation',
    summary: 'Revoke an access token, and optionally its descendants; they stop working at once',
    params: z.object({ token_id: z.string().max(100) }),
    query: RevokeQuery,
    results: { 200: { body: RevokedAccessToken, example: revokedTokenExample } },
    refusals: ['not_found'],
    rate: revokeRate,
  }),
  removeOrganisation: operation({
    id: 'postOrganisationRemove',
    method: 'POST',
    path: '/organisation/remove',
    access: ['owner'],
    tag: 'Organisation',
    summary: 'Remove your organisation after all its telemetry is erased; export ledger and audit log before',
    body: RemoveOrganisation,
    bodyExample: removeOrganisationExample,
    results: { 200: { body: OrganisationRemoved, example: organisationRemovedExample } },
    refusals: ['not_found', 'not_removable'],
    rate: removeRate,
  }),
} as const
