// Seals the private halves of signing keys, so that whoever reads the control-plane database or a
// backup of it can't sign: a compact JWE (RFC 7516) with AES-256-GCM, whose key comes from a key file
// or a secret outside the database. The header names the signing key it belongs to and the sealing
// key, and is authenticated with the rest, so that a sealed key that was put into another row, or
// changed by a bit, does not open.

import { createHash, hkdfSync, randomBytes } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose'

/** The signing keys can't be sealed or opened. The message names the mend; it never holds a secret. */
export class KeySealProblem extends Error {
  override readonly name = 'KeySealProblem'
}

/** Where the sealing key comes from: `secret` where it is not null, else the file. */
export interface KeySource {
  readonly secret: string | null
  readonly file: string
}

/** As many as a token has: too many to guess. */
const secretLengthMin = 32

const aes = 'A256GCM'

export class KeySeal {
  /** Names the sealing key without telling it; 16 hexadecimal digits. */
  readonly id: string
  readonly #key: Uint8Array

  /** The secret must be one that nobody can guess: it is not stretched. */
  constructor(secret: string) {
    const derive = (use: string) =>
      new Uint8Array(hkdfSync('sha256', secret, '', `lethe signing keys: ${use}`, 32))
    this.#key = derive('sealing')
    this.id = createHash('sha256').update(derive('name')).digest('hex').slice(0, 16)
  }

  seal(kid: string, privateJwk: Readonly<Record<string, unknown>>): Promise<string> {
    return new CompactEncrypt(new TextEncoder().encode(JSON.stringify(privateJwk)))
      .setProtectedHeader({ alg: 'dir', enc: aes, kid: this.id, sealed_kid: kid })
      .encrypt(this.#key)
  }

  /** Throws {@link KeySealProblem} where another key sealed it, or it is not what was sealed. */
  async open(kid: string, sealed: string): Promise<Record<string, unknown>> {
    const sealedBy = sealIdOf(sealed)
    if (sealedBy !== this.id) {
      throw new KeySealProblem(
        `The signing key ${kid} is sealed with the key ${sealedBy ?? 'of an unknown form'}, and the service was given ${this.id}.`,
      )
    }
    try {
      const options = { keyManagementAlgorithms: ['dir'], contentEncryptionAlgorithms: [aes] }
      const { plaintext, protectedHeader } = await compactDecrypt(sealed, this.#key, options)
      if (protectedHeader.sealed_kid === kid) return JSON.parse(new TextDecoder().decode(plaintext))
    } catch {
      // Said below: what failed in it says nothing that the operator could use.
    }
    throw new KeySealProblem(`The sealed signing key ${kid} was changed in the control-plane database.`)
  }
}

function sealIdOf(sealed: string): string | null {
  try {
    const { kid } = decodeProtectedHeader(sealed)
    return typeof kid === 'string' ? kid : null
  } catch {
    return null
  }
}

/**
 * Null where the source is a file that isn't there. Throws {@link KeySealProblem} for one that holds no key.
 */
export function readSeal({ file, secret }: KeySource): KeySeal | null {
  if (secret !== null) return new KeySeal(secret)
  if (!existsSync(file)) return null
  const text = readFileSync(file, 'utf8').trim()
  if (text.length >= secretLengthMin) return new KeySeal(text)
  throw new KeySealProblem(
    `${file} holds no key of ${secretLengthMin} characters or more; put back the file that was there (LETHE_KEY_FILE).`,
  )
}

/**
 * Makes the file with a new key, for its owner alone. Of two that do so at once both get the key of the
 * first.
 */
export function createKeyFile(file: string): KeySeal {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const aside = `${file}.${randomBytes(6).toString('hex')}`
  // Whole and on the disk before it has its name: what it seals can't be opened with a part of it.
  writeFileSync(aside, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flush: true })
  try {
    linkSync(aside, file)
  } catch (error) {
    if (!existsSync(file)) throw error
  } finally {
    rmSync(aside, { force: true })
  }
  const seal = readSeal({ file, secret: null })
  if (seal === null) throw new KeySealProblem(`${file} could not be made.`)
  return seal
}
