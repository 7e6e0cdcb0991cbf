// Brings the signing keys at rest in order before anything is signed: the one that signs is sealed and can be
// opened, the retired ones have no private half any more. What an older version left in clear text leaves the
// file, free pages and log included. Nothing here makes another key in place of one that can't be opened.

import type { Control, ControlTransaction } from '../control/database.ts'
import { dialectOf } from '../control/dialect.ts'
import { createKeyFile, type KeySeal, KeySealProblem, type KeySource, readSeal } from './key-seal.ts'

/** Set while clear text may be left in pages of the file that are free by now. */
const clearTextMark = 'signing_keys_in_clear_text'

/** In place of the private half of a key that signs no more. */
const forgotten = ''

/**
 * The seal of this folder's signing keys; makes the key file where nothing is sealed yet. Throws
 * {@link KeySealProblem} with the mend where the key that signs can't be opened.
 */
export async function prepareSeal(control: Control, source: KeySource): Promise<KeySeal> {
  const rows = await readKeys(control)
  const sealed = rows.filter(({ private_jwk }) => private_jwk !== forgotten && !isClear(private_jwk))
  const current = sealed.filter(({ retired_at_ms }) => retired_at_ms === null)
  const found = readSeal(source)
  if (found === null && current.length > 0) {
    throw new KeySealProblem(`The signing keys are sealed, and ${source.file} is not there. ${mend}`)
  }
  const seal = found ?? createKeyFile(source.file)
  for (const { kid, private_jwk } of current) await openOrTell(seal, kid, private_jwk)
  await sealClear(control, seal, rows)
  await eraseClearText(control)
  return seal
}

/**
 * Seals with another key from now on, which is made where its file isn't there. Answers how
 * many keys were sealed anew.
 */
export async function reseal(control: Control, from: KeySource, to: KeySource): Promise<number> {
  const before = readSeal(from)
  if (before === null) throw new KeySealProblem(`${from.file}, the old key file, is not there.`)
  const after = readSeal(to) ?? createKeyFile(to.file)
  const opened: { readonly kid: string; readonly sealed: string }[] = []
  for (const { kid, private_jwk, retired_at_ms } of await readKeys(control)) {
    if (retired_at_ms !== null || private_jwk === forgotten) continue
    const privateJwk = isClear(private_jwk) ? JSON.parse(private_jwk) : await before.open(kid, private_jwk)
    opened.push({ kid, sealed: await after.seal(kid, privateJwk) })
  }
  await control.transaction().execute(async (trx) => {
    for (const { kid, sealed } of opened) await setPrivate(trx, kid, sealed)
  })
  return opened.length
}

/** The seal for a new key where the one that sealed the old one is lost. */
export function sealForNewKey(source: KeySource): KeySeal {
  return readSeal(source) ?? createKeyFile(source.file)
}

const mend =
  'Put back the key file of this data folder and name it with LETHE_KEY_FILE, or give the same LETHE_KEY_SECRET as before; a backup does not hold it. After a change of the key run "lethe keys reseal". If it is lost for good, "lethe keys rotate --lost-key" makes a new signing key; what the old one signed stays valid.'

async function openOrTell(seal: KeySeal, kid: string, sealed: string): Promise<void> {
  try {
    await seal.open(kid, sealed)
  } catch (cause) {
    if (!(cause instanceof KeySealProblem)) throw cause
    throw new KeySealProblem(`${cause.message} ${mend}`, { cause })
  }
}

function readKeys(control: Control) {
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

async function sealClear(
  control: Control,
  seal: KeySeal,
  rows: Awaited<ReturnType<typeof readKeys>>,
): Promise<void> {
  const changes: { readonly kid: string; readonly stored: string }[] = []
  for (const { kid, private_jwk, retired_at_ms } of rows) {
    if (retired_at_ms !== null && private_jwk !== forgotten) changes.push({ kid, stored: forgotten })
    else if (isClear(private_jwk))
      changes.push({ kid, stored: await seal.seal(kid, JSON.parse(private_jwk)) })
  }
  if (changes.length === 0) return
  await control.transaction().execute(async (trx) => {
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
 * Writes the whole file anew, so that no page keeps what was in it; once, and again where that was cut short.
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
