// The lines of access tokens: which token was made with which, read upwards in pieces. An organisation may
// have made hundreds of thousands of tokens, each with the one before it, and SQLite answers on the event
// loop: so no statement returns more than a piece, and others use the loop between two pieces. The maker of a
// token never changes, so what was read stays true whatever is written meanwhile.

import { type RawBuilder, type Selectable, sql } from 'kysely'
import type { AccessTokensTable, Control, ControlTransaction } from '../control/database.ts'
import type { Pace } from '../core/turns/pace.ts'

/** A token and what it was made with. */
type MadeToken = Pick<Selectable<AccessTokensTable>, 'id' | 'made_with'>

/** Resolves when a long computation may continue. */
export type TokenTurn = () => Promise<unknown>

/** Tokens that are read at once: some milliseconds. */
export const tokensPerPiece = 500

/** Lines that a piece follows. Where two of them meet, the rest of the piece has the same tokens again. */
const linesPerPiece = 50

export class TokenLines {
  readonly #tenantId: string
  readonly #makers = new Map<string, string | null>()
  /** How many of the tokens that were read were made with each. */
  readonly #children = new Map<string, number>()

  constructor(tenantId: string) {
    this.#tenantId = tenantId
  }

  /** What the token was made with; null where that is nothing, or the token was not read. */
  makerOf(id: string): string | null {
    return this.#makers.get(id) ?? null
  }

  /** Adds the tokens and all their ancestors. A circle, which only a change by hand creates, ends a line. */
  async read(
    control: Control | ControlTransaction,
    tokens: readonly MadeToken[],
    turn: TokenTurn,
  ): Promise<void> {
    const open = new Set<string>()
    for (const token of tokens) this.#add(token, open)
    while (open.size > 0) {
      const from = [...open].slice(0, linesPerPiece)
      const piece = await readPiece(control, this.#tenantId, from)
      for (const token of piece) this.#add(token, open)
      // Those that a full piece lacks are asked for again; of a shorter one, the organisation has none.
      if (piece.length < tokensPerPiece) for (const id of from) open.delete(id)
      if (open.size > 0) await turn()
    }
  }

  /**
   * Counts, for each token, those of `live` that descend from it, at any distance. Only `live` and their
   * ancestors may have been read.
   */
  async countBelow(live: readonly MadeToken[], pace: Pace): Promise<ReadonlyMap<string, number>> {
    const isLive = new Set(live.map(({ id }) => id))
    const counts = new Map<string, number>()
    const added = new Map<string, number>()
    // From the youngest up; each is added to its maker after everything below it.
    const ready = [...isLive].filter((id) => !this.#children.has(id))
    for (let id = ready.pop(); id !== undefined; id = ready.pop()) {
      if (pace.isOver()) await pace.turn()
      const maker = this.makerOf(id)
      if (maker === null) continue
      counts.set(maker, (counts.get(maker) ?? 0) + (counts.get(id) ?? 0) + (isLive.has(id) ? 1 : 0))
      const children = (added.get(maker) ?? 0) + 1
      added.set(maker, children)
      if (children === this.#children.get(maker)) ready.push(maker)
    }
    return counts
  }

  /** Adds a token, and its maker to `open` where that was not read. */
  #add({ id, made_with }: MadeToken, open: Set<string>): void {
    open.delete(id)
    if (this.#makers.has(id)) return
    this.#makers.set(id, made_with)
    if (made_with === null) return
    this.#children.set(made_with, (this.#children.get(made_with) ?? 0) + 1)
    if (!this.#makers.has(made_with)) open.add(made_with)
  }
}

/** Which tokens descend from one, at any distance. The ancestors of those that are asked for must be read. */
export class TokenDescent {
  readonly #lines: TokenLines
  readonly #ancestor: string
  readonly #known = new Map<string, boolean>()

  constructor(lines: TokenLines, ancestor: string) {
    this.#lines = lines
    this.#ancestor = ancestor
  }

  /** Returns those of the tokens that descend from it. It never descends from itself, even in a circle. */
  async select<T extends { readonly id: string }>(tokens: readonly T[], pace: Pace): Promise<T[]> {
    const found: T[] = []
    for (const token of tokens) {
      if (token.id !== this.#ancestor && (await this.#has(token.id, pace))) found.push(token)
    }
    return found
  }

  async #has(id: string, pace: Pace): Promise<boolean> {
    const path: string[] = []
    let at: string | null = id
    while (at !== null && at !== this.#ancestor && !this.#known.has(at)) {
      // In a circle the way comes back here.
      this.#known.set(at, false)
      path.push(at)
      at = this.#lines.makerOf(at)
      if (pace.isOver()) await pace.turn()
    }
    const isBelow = at !== null && (at === this.#ancestor || this.#known.get(at) === true)
    for (const step of isBelow ? path : []) {
      this.#known.set(step, true)
      if (pace.isOver()) await pace.turn()
    }
    return isBelow
  }
}

/** Reads tokens of these ids and ancestors of them, the nearest first, as many as fit in a piece. */
async function readPiece(
  control: Control | ControlTransaction,
  tenantId: string,
  ids: readonly string[],
): Promise<readonly MadeToken[]> {
  // The maker is read by a statement of its own for each row, so that no plan reads the whole table for it.
  const { rows } = await sql<MadeToken>`
    with recursive line (id, made_with) as (
      select id, made_with from access_tokens where tenant_id = ${tenantId} and id in (${sql.join(ids)})
      union
      select line.made_with, (
        select maker.made_with from access_tokens maker
        where maker.id = line.made_with and maker.tenant_id = ${tenantId})
      from line where line.made_with is not null
    )
    select id, made_with from line limit ${tokensPerPiece}`.execute(control)
  return rows
}

/** Reads the tokens that work: as many as an organisation may have, and those that the operator made. */
export async function readActiveTokens(
  control: Control | ControlTransaction,
  tenantId: string,
  nowMs: number,
): Promise<readonly MadeToken[]> {
  const { rows } = await sql<MadeToken>`
    select id, made_with from access_tokens where id in ${activeIds(tenantId, nowMs)}`.execute(control)
  return rows
}

/**
 * Selects the ids of the tokens that work. In two parts, each of which an index finds, because ended tokens
 * stay stored.
 */
export function activeIds(tenantId: string, nowMs: number): RawBuilder<string> {
  const notRevoked = sql`select id from access_tokens where tenant_id = ${tenantId} and revoked_at_ms is null`
  return sql<string>`(
    ${notRevoked} and expires_at_ms is null union all ${notRevoked} and expires_at_ms > ${nowMs})`
}
