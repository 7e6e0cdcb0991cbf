// GET /me, the access tokens of the caller's own organisation, and its end. An admin can't make an owner: nobody
// hands out more than they hold.

import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { cursorQuery, limitQuery, pageOf } from '../../contract/common.ts'
import {
  AccessToken,
  CreateAccessToken,
  CreatedAccessToken,
  Me,
  OrganisationRemoved,
  RemoveOrganisation,
  RevokedAccessToken,
  RevokeQuery,
  roles,
} from '../../contract/tenancy.ts'
import { actorText } from '../core/actor.ts'
import { AppError, problem } from '../core/app-error.ts'
import type { Clock } from '../core/clock.ts'
import { decodeCursor, pageOfRows } from '../http/cursor.ts'
import { route } from '../http/route.ts'
import type { OrganisationRemoval } from './removal.ts'
import type { TenancyStore } from './store.ts'
import { newTokenSecret } from './tenancy.ts'

const msPerDay = 86_400_000

export function addTenancyRoutes(http: FastifyInstance, store: TenancyStore, clock: Clock): void {
  route(http, {
    method: 'GET',
    url: '/me',
    access: roles,
    tag: 'Organisation',
    summary: 'Who you are to this service',
    result: Me,
    handle: async ({ caller }) => ({
      body: {
        tenant_id: caller.tenantId,
        organisation_name: caller.organisationName,
        role: caller.role,
        requester: actorText(caller.requester),
      },
    }),
  })

  route(http, {
    method: 'GET',
    url: '/tokens',
    access: ['owner', 'admin'],
    tag: 'Organisation',
    summary: 'Access tokens of your organisation, newest first; never their secrets',
    query: z.strictObject({ limit: limitQuery, cursor: cursorQuery }),
    result: pageOf(AccessToken),
    handle: async ({ caller, query }) => {
      const beforeId = decodeCursor(query.cursor, 1)?.[0] ?? null
      const tokens = await store.listTokens(caller.tenantId, { limit: query.limit + 1, beforeId })
      return {
        body: pageOfRows(
          tokens,
          query.limit,
          (token) => [token.id],
          (token) => token,
        ),
      }
    },
  })

  route(http, {
    method: 'POST',
    url: '/tokens',
    access: ['owner', 'admin'],
    tag: 'Organisation',
    summary: 'Create an access token; its secret is in this answer and nowhere else',
    body: CreateAccessToken,
    status: 201,
    result: CreatedAccessToken,
    handle: async ({ caller, body }) => {
      if (body.role === 'owner' && caller.role !== 'owner') {
        throw new AppError('role_not_permitted', { sentence: 'Only an owner can create an owner token.' })
      }
      const token = newTokenSecret(body.role)
      const created = await store.createToken({
        tenantId: caller.tenantId,
        name: body.name,
        role: body.role,
        secret: token,
        expiresAtMs:
          body.expires_in_days === undefined ? null : clock.nowMs() + body.expires_in_days * msPerDay,
        actor: caller.requester,
      })
      return { body: { ...created, token } }
    },
  })
  addRevokeRoute(http, store)
}

function addRevokeRoute(http: FastifyInstance, store: TenancyStore): void {
  route(http, {
    method: 'DELETE',
    url: '/tokens/:token_id',
    access: ['owner', 'admin'],
    tag: 'Organisation',
    summary:
      'Revoke an access token, and on request what descends from it; they stop working with the next request',
    params: z.object({ token_id: z.string().max(100) }),
    query: RevokeQuery,
    result: RevokedAccessToken,
    refusals: [404],
    usesReserve: true,
    handle: async ({ caller, params, query }) => ({
      body: await store.revokeToken({
        tenantId: caller.tenantId,
        id: params.token_id,
        actor: caller.requester,
        actorRole: caller.role,
        withDescendants: query.descendants === 'true',
      }),
    }),
  })
}

export function addRemovalRoute(http: FastifyInstance, removal: OrganisationRemoval): void {
  route(http, {
    method: 'POST',
    url: '/organisation/remove',
    access: ['owner'],
    tag: 'Organisation',
    summary: 'Remove your organisation once all its telemetry is erased; export ledger and audit log before',
    body: RemoveOrganisation,
    result: OrganisationRemoved,
    refusals: [409],
    usesReserve: true,
    check: (body, caller) => confirmProblems(body, caller.tenantId),
    onInvalid: async (caller, problems) => {
      const isMisconfirmed = problems.some(({ type }) => type === 'value_error')
      if (isMisconfirmed) await removal.recordRefusal(caller.tenantId, caller.requester)
    },
    handle: async ({ caller }) => ({ body: await removal.remove(caller.tenantId, caller.requester) }),
  })
}

function confirmProblems(body: unknown, tenantId: string) {
  if (typeof body !== 'object' || body === null || !('confirm' in body)) return []
  const { confirm } = body
  if (typeof confirm !== 'string' || confirm === tenantId) return []
  const ctx = { error: 'confirm does not equal your tenant_id' }
  return [
    problem(
      ['body', 'confirm'],
      'value_error',
      'Type the tenant_id of your organisation exactly',
      confirm,
      ctx,
    ),
  ]
}
