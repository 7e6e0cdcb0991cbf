// How many access tokens an organisation may have, and who may still make one above that. A token counts to
// the line and the branch of its maker, in which it is. So one admin who makes as many as there may be does
// not keep an owner from making one, and multiplies nothing by making tokens that make tokens.

import { sql } from 'kysely'
import type { ControlTransaction } from '../control/database.ts'
import { AppError } from '../core/app-error.ts'
import { Shares, unknownLine } from '../http/limits/shares.ts'
import { lineIn, type TokenOrigin } from './token-caller.ts'
import { activeIds } from './token-lines.ts'

/**
 * Active access tokens of an organisation; above it, a line or branch that made less than an equal share of
 * it is not refused. A larger fleet shares the tokens of its collectors.
 */
export const activeTokensMax = 1000

/** Whoever has the secret of a root can make many branches, so all have at most this many times the limit. */
const branchesMax = 2

/**
 * Throws `too_many_tokens` where the organisation has as many as it may have, and the line and the branch of
 * the maker have made their share; `maker` is null where that is no token.
 */
export async function refuseTooManyTokens(
  trx: ControlTransaction,
  tenantId: string,
  maker: TokenOrigin | null,
  nowMs: number,
): Promise<void> {
  const { active } = await trx
    .selectFrom('access_tokens')
    .select(({ fn }) => fn.countAll<number>().as('active'))
    .where('id', 'in', activeIds(tenantId, nowMs))
    .executeTakeFirstOrThrow()
  if (Number(active) < activeTokensMax) return
  const made = await readMade(trx, tenantId, nowMs)
  const [root, branch] = pathOf(maker)
  if (made.hasLess([root], activeTokensMax, 1)) return
  const isBelowBranches = made.amount < branchesMax * activeTokensMax
  if (isBelowBranches && made.hasLess([root, branch], activeTokensMax, 1)) return
  throw new AppError('too_many_tokens', {
    sentence: `Your organisation has ${active} access tokens, and ${activeTokensMax} is the most for who has made this many; revoke some that are not in use.`,
  })
}

/** Reads how many of the active tokens each line and branch has made. A root counts as made by itself. */
async function readMade(trx: ControlTransaction, tenantId: string, nowMs: number): Promise<Shares> {
  const { rows } = await sql<TokenOrigin & { readonly tokens: number | string }>`
    select made.token_id, maker.made_with, made.root_id, made.tokens
    from (
      select coalesce(made_with, id) as token_id, root_id, count(*) as tokens
      from access_tokens where id in ${activeIds(tenantId, nowMs)} group by coalesce(made_with, id), root_id
    ) made left join access_tokens maker on maker.id = made.token_id and maker.tenant_id = ${tenantId}`.execute(
    trx,
  )
  const made = new Shares()
  for (const { tokens, ...maker } of rows) made.add(pathOf(maker), Number(tokens))
  return made
}

function pathOf(maker: TokenOrigin | null): readonly [root: string, branch: string] {
  const { branch, root } = (maker === null ? undefined : lineIn(maker).line) ?? unknownLine
  return [root, branch]
}
