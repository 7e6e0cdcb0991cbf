// Seals the private halves of signing keys, so that a reader of the control-plane database or of a backup of
// it can't sign: a compact JWE (RFC 7516) with AES-256-GCM, whose key comes from a key file or a secret
// outside the database. The header names the signing key and the sealing key, and is authenticated with the
// rest, so that a sealed key that was moved to another row, or changed by a bit, does not open.

import { createHash, hkdfSync, randomBytes } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose'

/** The signing keys can't be sealed or opened. The message says what to do; it never contains a secret. */
export class KeySealProblem extends Error {
  override readonly name = 'KeySealProblem'
}

/** The source of the sealing key: `secret` where it is not null, otherwise the file. */
export interface KeySource {
  readonly secret: string | null
  readonly file: string
}

/** As many as a token has: too many to guess. */
const secretLengthMin = 32

const aes = 'A256GCM'

export class KeySeal {
  /** Identifies the sealing key without revealing it; 16 hexadecimal digits. */
  readonly id: string
  readonly #key: Uint8Array

  /** Nobody may be able to guess the secret: it is not stretched. */
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

  /** Throws {@link KeySealProblem} where another key sealed it, or where it was changed. */
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
      // The refusal follows: the reason would not help the operator.
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
 * Returns null where the source is a file that doesn't exist. Throws {@link KeySealProblem} for a file
 * without a key.
 */
export function readSeal({ file, secret }: KeySource): KeySeal | null {
  if (secret !== null) return new KeySeal(secret)
  if (!existsSync(file)) return null
  const text = readFileSync(file, 'utf8').trim()
  if (text.length >= secretLengthMin) return new KeySeal(text)
  throw new KeySealProblem(
    `${file} has no key of ${secretLengthMin} characters or more; put back the file that was there (LETHE_KEY_FILE).`,
  )
}

/**
 * Creates the file with a new key, readable by its owner only. If two do so at once, both get the key of the
 * first.
 */
export function createKeyFile(file: string): KeySeal {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const aside = `${file}.${randomBytes(6).toString('hex')}`
  // Complete and on the disk before it has its name: with a part of the key nothing can be opened.
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
