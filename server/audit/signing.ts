// The service's own signing keys. One key signs at a time; retired ones stay for good, so that what they signed
// verifies for ever. A private key is read by `sign` and goes nowhere else: it is in no answer, log or error.

import type { Control, ControlTransaction } from '../control/database.ts'
import type { Clock } from '../core/clock.ts'
import { type KeyPair, newKeyPair, type PublicKey, signJws } from './jws.ts'
import { appendAudit } from './log.ts'

export interface KeyRecord {
  readonly kid: string
  readonly createdAtMs: number
  readonly retiredAtMs: number | null
}

/** The table has one connection, so nothing here may be awaited inside somebody else's transaction: it would wait for itself. */
export class SigningKeys {
  readonly #control: Control
  readonly #clock: Clock

  constructor(control: Control, clock: Clock) {
    this.#control = control
    this.#clock = clock
  }

  /**
   * A compact JWS over the RFC 8785 text of the payload, with the key of this moment; the first use makes the first
   * key. `typ` is the kind of statement, which whoever verifies asks for by name. Throws where JSON can't say it.
   */
  async sign(payload: object, typ: string): Promise<string> {
    const row = await this.#current()
    return signJws(payload, typ, { kid: row.kid, privateJwk: JSON.parse(row.private_jwk) })
  }

  /** The public halves of all keys, retired ones included, newest first; never empty. */
  async jwks(): Promise<{ keys: PublicKey[] }> {
    await this.#current()
    const rows = await this.#control
      .selectFrom('signing_keys')
      .select('public_jwk')
      .orderBy('created_at_ms', 'desc')
      .orderBy('kid')
      .execute()
    return { keys: rows.map((row): PublicKey => JSON.parse(row.public_jwk)) }
  }

  /** All keys, oldest first. Empty before the first use. */
  async list(): Promise<KeyRecord[]> {
    const rows = await this.#control
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

  /**
   * Retires the key and makes a new one, in one transaction; answers the new `kid`. It is in the audit log of every
   * organisation, because each of them may have pinned the key before.
   */
  async rotate(actor: string): Promise<string> {
    const nowMs = this.#clock.nowMs()
    const made = await newKeyPair()
    return this.#control.transaction().execute(async (trx) => {
      const retired = await findCurrent(trx)
      await trx
        .updateTable('signing_keys')
        .set({ retired_at_ms: nowMs })
        .where('retired_at_ms', 'is', null)
        .execute()
      const { kid } = await insertKey(trx, made, nowMs)
      for (const { tenant_id } of await trx.selectFrom('organisations').select('tenant_id').execute()) {
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
    const made = await newKeyPair()
    // Two first uses at once make two keys and keep one: the second waits for the first one's transaction and finds its key.
    return this.#control
      .transaction()
      .execute(async (trx) => (await findCurrent(trx)) ?? (await insertKey(trx, made, nowMs)))
  }
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
  { publicKey, privateJwk }: KeyPair,
  nowMs: number,
): Promise<SigningRow> {
  const row = { kid: publicKey.kid, private_jwk: JSON.stringify(privateJwk) }
  await trx
    .insertInto('signing_keys')
    .values({ ...row, public_jwk: JSON.stringify(publicKey), created_at_ms: nowMs, retired_at_ms: null })
    .execute()
  return row
}
