// The service's own signing keys. One key signs at a time; retired ones stay for ever, so that what they
// signed can always be verified. A private key is sealed and is opened by `sign` only: it is in no response,
// log or error. A retired key has none any more.

import type { Control, ControlTransaction } from '../control/database.ts'
import { lock } from '../control/dialect.ts'
import { transact } from '../control/transaction.ts'
import type { Actor } from '../core/actor.ts'
import { BatchedLookUps } from '../core/batched-look-ups.ts'
import type { Clock } from '../core/clock.ts'
import { newKeyPair, type PublicKey, signJws } from './jws.ts'
import type { KeySeal } from './key-seal.ts'
import { appendAudit } from './log.ts'

interface KeyRecord {
  readonly kid: string
  readonly createdAtMs: number
  readonly retiredAtMs: number | null
}

/**
 * The database has one connection, so nothing here may be awaited inside another transaction: it would wait
 * for itself.
 */
export class SigningKeys {
  readonly #control: Control
  readonly #clock: Clock
  readonly #seal: KeySeal
  /** Anybody may ask for them without a token, so those who ask at once share a reading. */
  readonly #published: BatchedLookUps<PublicKey[]>

  constructor(control: Control, clock: Clock, seal: KeySeal) {
    this.#published = new BatchedLookUps((all) => this.#readPublished(all))
    this.#control = control
    this.#clock = clock
    this.#seal = seal
  }

  /**
   * Returns a compact JWS over the RFC 8785 text of the payload, with the current key; the first use makes
   * the first key. `typ` is the kind of statement, which a verifier requires by name. Throws where JSON can't
   * represent the payload.
   */
  async sign(payload: object, typ: string): Promise<string> {
    const row = await this.#current()
    return signJws(payload, typ, {
      kid: row.kid,
      privateJwk: await this.#seal.open(row.kid, row.private_jwk),
    })
  }

  /** Returns the public halves of all keys, retired ones included, newest first; never empty. */
  async jwks(): Promise<{ keys: PublicKey[] }> {
    return { keys: (await this.#published.get('')) ?? [] }
  }

  async #readPublished(all: readonly string[]): Promise<ReadonlyMap<string, PublicKey[]>> {
    await this.#current()
    const keys = await readPublicKeys(this.#control)
    return new Map(all.map((key) => [key, keys]))
  }

  /**
   * Retires the key and makes a new one, in one transaction; returns the new `kid`. It is recorded in the
   * audit log of every organisation, because each of them may have pinned the key before.
   */
  async rotate(actor: Actor): Promise<string> {
    const nowMs = this.#clock.nowMs()
    const made = await this.#make()
    return transact(this.#control, async (trx) => {
      await lock(trx, 'signing_keys')
      await lock(trx, 'organisations')
      const retired = await findCurrent(trx)
      await trx
        .updateTable('signing_keys')
        .set({ retired_at_ms: nowMs, private_jwk: '' })
        .where('retired_at_ms', 'is', null)
        .execute()
      const { kid } = await insertKey(trx, made, nowMs)
      const organisations = trx.selectFrom('organisations').select('tenant_id').orderBy('tenant_id')
      for (const { tenant_id } of await organisations.execute()) {
        await appendAudit(trx, tenant_id, nowMs, {
          actor,
          action: 'signing_key.rotated',
          target: kid,
          outcome: 'accepted',
          facts: { retired: retired?.kid ?? null },
        })
      }
      return kid
    })
  }

  async #current(): Promise<SigningRow> {
    const found = await findCurrent(this.#control)
    if (found !== null) return found
    const nowMs = this.#clock.nowMs()
    const made = await this.#make()
    // Two first uses at once make two keys and keep one: the second waits for the first transaction and finds
    // its key.
    return transact(this.#control, async (trx) => {
      await lock(trx, 'signing_keys')
      return (await findCurrent(trx)) ?? (await insertKey(trx, made, nowMs))
    })
  }

  async #make(): Promise<NewKey> {
    const { privateJwk, publicKey } = await newKeyPair()
    return { publicKey, sealed: await this.#seal.seal(publicKey.kid, privateJwk) }
  }
}

/** Returns all keys, oldest first. Empty before the first use. */
export async function listSigningKeys(control: Control): Promise<KeyRecord[]> {
  const rows = await control
    .selectFrom('signing_keys')
    .select(['kid', 'created_at_ms', 'retired_at_ms'])
    .orderBy('created_at_ms')
    .orderBy('kid')
    .execute()
  return rows.map((row) => ({
    kid: row.kid,
    createdAtMs: row.created_at_ms,
    retiredAtMs: row.retired_at_ms,
  }))
}

/** Returns the public halves, newest first. Empty before the first use. */
export async function readPublicKeys(control: Control): Promise<PublicKey[]> {
  const rows = await control
    .selectFrom('signing_keys')
    .select('public_jwk')
    .orderBy('created_at_ms', 'desc')
    .orderBy('kid')
    .execute()
  return rows.map((row): PublicKey => JSON.parse(row.public_jwk))
}

interface NewKey {
  readonly publicKey: PublicKey
  readonly sealed: string
}

interface SigningRow {
  readonly kid: string
  readonly private_jwk: string
}

async function findCurrent(control: Control | ControlTransaction): Promise<SigningRow | null> {
  const row = await control
    .selectFrom('signing_keys')
    .select(['kid', 'private_jwk'])
    .where('retired_at_ms', 'is', null)
    .executeTakeFirst()
  return row ?? null
}

async function insertKey(
  trx: ControlTransaction,
  { publicKey, sealed }: NewKey,
  nowMs: number,
): Promise<SigningRow> {
  const row = { kid: publicKey.kid, private_jwk: sealed }
  await trx
    .insertInto('signing_keys')
    .values({ ...row, public_jwk: JSON.stringify(publicKey), created_at_ms: nowMs, retired_at_ms: null })
    .execute()
  return row
}
