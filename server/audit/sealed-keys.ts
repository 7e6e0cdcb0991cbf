// Prepares the stored signing keys before anything is signed: the current one is sealed and can be opened,
// retired ones have no private half any more. Clear text of an older version is removed from the file, from
// free pages and from the log. Nothing here makes another key in place of one that can't be opened.

import type { Control, ControlTransaction } from '../control/database.ts'
import { dialectOf, lock } from '../control/dialect.ts'
import { transact } from '../control/transaction.ts'
import { createKeyFile, type KeySeal, KeySealProblem, type KeySource, readSeal } from './key-seal.ts'

/** Set while clear text may be left in free pages of the file. */
const clearTextMark = 'signing_keys_in_clear_text'

/** Replaces the private half of a retired key. */
const forgotten = ''

/**
 * Returns the seal of this folder's signing keys; makes the key file where nothing is sealed yet. Throws
 * {@link KeySealProblem} with instructions where the current signing key can't be opened.
 */
export async function prepareSeal(control: Control, source: KeySource): Promise<KeySeal> {
  const rows = await readKeys(control)
  const sealed = rows.filter(({ private_jwk }) => private_jwk !== forgotten && !isClear(private_jwk))
  const current = sealed.filter(({ retired_at_ms }) => retired_at_ms === null)
  const found = readSeal(source)
  if (found === null && current.length > 0) {
    throw new KeySealProblem(`The signing keys are sealed, and ${source.file} is not there. ${instructions}`)
  }
  const seal = found ?? createKeyFile(source.file)
  for (const { kid, private_jwk } of current) await openOrTell(seal, kid, private_jwk)
  await sealClear(control, seal)
  await eraseClearText(control)
  return seal
}

/**
 * Seals with another key from now on, and makes its file where it doesn't exist. Returns how many keys were
 * sealed again.
 */
export async function reseal(control: Control, from: KeySource, to: KeySource): Promise<number> {
  const before = readSeal(from)
  if (before === null) throw new KeySealProblem(`${from.file}, the old key file, is not there.`)
  const after = readSeal(to) ?? createKeyFile(to.file)
  return transact(control, async (trx) => {
    await lock(trx, 'signing_keys')
    let sealed = 0
    for (const { kid, private_jwk, retired_at_ms } of await readKeys(trx)) {
      if (retired_at_ms !== null || private_jwk === forgotten) continue
      const privateJwk = isClear(private_jwk) ? JSON.parse(private_jwk) : await before.open(kid, private_jwk)
      await setPrivate(trx, kid, await after.seal(kid, privateJwk))
      sealed++
    }
    return sealed
  })
}

/** Returns the seal for a new key where the seal of the old one is lost. */
export function sealForNewKey(source: KeySource): KeySeal {
  return readSeal(source) ?? createKeyFile(source.file)
}

const instructions =
  'Put back the key file of this data folder and name it with LETHE_KEY_FILE, or give the same LETHE_KEY_SECRET as before; no backup contains it. After a change of the key run "lethe keys reseal". If it is lost for good, "lethe keys rotate --lost-key" makes a new signing key; what the old one signed stays valid.'

async function openOrTell(seal: KeySeal, kid: string, sealed: string): Promise<void> {
  try {
    await seal.open(kid, sealed)
  } catch (cause) {
    if (!(cause instanceof KeySealProblem)) throw cause
    throw new KeySealProblem(`${cause.message} ${instructions}`, { cause })
  }
}

function readKeys(control: Control | ControlTransaction) {
  return control
    .selectFrom('signing_keys')
    .select(['kid', 'private_jwk', 'retired_at_ms'])
    .orderBy('kid')
    .execute()
}

/** A JWK is a JSON object; a sealed one is not. */
function isClear(stored: string): boolean {
  return stored.startsWith('{')
}

async function sealClear(control: Control, seal: KeySeal): Promise<void> {
  await transact(control, async (trx) => {
    await lock(trx, 'signing_keys')
    const changes: { readonly kid: string; readonly stored: string }[] = []
    for (const { kid, private_jwk, retired_at_ms } of await readKeys(trx)) {
      if (retired_at_ms !== null && private_jwk !== forgotten) changes.push({ kid, stored: forgotten })
      else if (isClear(private_jwk))
        changes.push({ kid, stored: await seal.seal(kid, JSON.parse(private_jwk)) })
    }
    if (changes.length === 0) return
    await trx
      .insertInto('instance')
      .values({ key: clearTextMark, value: '1' })
      .onConflict((conflict) => conflict.column('key').doNothing())
      .execute()
    for (const { kid, stored } of changes) await setPrivate(trx, kid, stored)
  })
}

async function setPrivate(trx: ControlTransaction, kid: string, stored: string): Promise<void> {
  await trx.updateTable('signing_keys').set({ private_jwk: stored }).where('kid', '=', kid).execute()
}

/**
 * Rewrites the whole file, so that no page keeps its old content; once, and again where that was interrupted.
 */
async function eraseClearText(control: Control): Promise<void> {
  const mark = await control
    .selectFrom('instance')
    .select('value')
    .where('key', '=', clearTextMark)
    .executeTakeFirst()
  if (mark === undefined) return
  await dialectOf(control).rewrite(control)
  await control.deleteFrom('instance').where('key', '=', clearTextMark).execute()
}
