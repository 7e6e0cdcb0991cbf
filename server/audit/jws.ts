// Signatures without I/O: a compact JWS (RFC 7515) with Ed25519 over the RFC 8785 text of its payload, so
// that anyone can check it with a library of their own choice and read the same bytes. `EdDSA` is the
// algorithm name that most libraries know (RFC 8037); the newer `Ed25519` means the same and is not used. A
// signature is valid only with a trusted key, for the expected type of statement, and in its one canonical
// spelling.

import canonicalize from 'canonicalize'
import {
  base64url,
  CompactSign,
  calculateJwkThumbprint,
  compactVerify,
  decodeProtectedHeader,
  errors,
  exportJWK,
  generateKeyPair,
  importJWK,
} from 'jose'
import { fileBounds, parseBoundedJson } from '../core/input/json-bounds.ts'

const algorithm = 'EdDSA'

/** A public key as it is published: Ed25519, for signatures only. `kid` is the thumbprint of RFC 7638. */
export interface PublicKey {
  readonly kty: 'OKP'
  readonly crv: 'Ed25519'
  readonly x: string
  readonly kid: string
  readonly alg: string
  readonly use: 'sig'
}

/** The problem of a signature; the message is for the caller of the check. */
export class SignatureProblem extends Error {
  override readonly name = 'SignatureProblem'
}

interface KeyPair {
  readonly publicKey: PublicKey
  /** A secret: an OKP JWK with `d`. */
  readonly privateJwk: Readonly<Record<string, unknown>>
}

export async function newKeyPair(): Promise<KeyPair> {
  const pair = await generateKeyPair(algorithm, { crv: 'Ed25519', extractable: true })
  const kty = 'OKP'
  const { crv, x, d } = await exportJWK(pair.privateKey)
  if (crv !== 'Ed25519' || typeof x !== 'string' || typeof d !== 'string') {
    throw new TypeError('The new key is not one of Ed25519.')
  }
  const kid = await calculateJwkThumbprint({ kty, crv, x })
  return {
    publicKey: { kty, crv, x, kid, alg: algorithm, use: 'sig' },
    privateJwk: { kty, crv, x, d, kid, alg: algorithm },
  }
}

/**
 * Throws where the payload contains something that JSON can't represent. `typ` names the kind of statement.
 */
export async function signJws(
  payload: object,
  typ: string,
  key: { readonly kid: string; readonly privateJwk: Readonly<Record<string, unknown>> },
): Promise<string> {
  const text = canonicalize(payload)
  if (text === undefined) throw new TypeError('What is signed must be a JSON object.')
  return new CompactSign(new TextEncoder().encode(text))
    .setProtectedHeader({ alg: algorithm, typ, kid: key.kid })
    .sign(await importJWK(key.privateJwk, algorithm))
}

/**
 * Returns the payload of a JWS and the key that signed it. Throws {@link SignatureProblem} where the text is
 * not a JWS of type `typ`, its key is not in `jwks`, or the signature is wrong. Keys of `jwks` that are not
 * Ed25519 are ignored.
 */
export async function verifyJws(
  jws: string,
  jwks: { readonly keys: readonly unknown[] },
  typ: string,
): Promise<{ payload: Record<string, unknown>; kid: string }> {
  const kid = readHeader(jws, typ)
  const x = jwks.keys.map((key) => publicPart(key, kid)).find((part) => part !== null)
  if (x === undefined)
    throw new SignatureProblem(`it is signed with the key ${kid}, which is not a trusted one`)
  // The label alone proves nothing: two keys could have the same one.
  if ((await calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x })) !== kid) {
    throw new SignatureProblem(`the trusted key ${kid} is not the one its kid names`)
  }
  const key = await importJWK({ kty: 'OKP', crv: 'Ed25519', x }, algorithm)
  return { payload: await readSigned(jws, key), kid }
}

async function readSigned(jws: string, key: Awaited<ReturnType<typeof importJWK>>) {
  let bytes: Uint8Array
  try {
    bytes = (await compactVerify(jws, key, { algorithms: [algorithm] })).payload
  } catch (error) {
    if (error instanceof errors.JOSEError)
      throw new SignatureProblem('the signature does not match what is signed')
    throw error
  }
  return readPayload(bytes)
}

/**
 * Returns the payload of a JWS and the key that it names, without any check of the signature. Throws {@link
 * SignatureProblem}.
 */
export function readUnverified(jws: string, typ: string): { payload: Record<string, unknown>; kid: string } {
  const kid = readHeader(jws, typ)
  return { payload: readPayload(base64url.decode(jws.split('.')[1] ?? '')), kid }
}

function readPayload(bytes: Uint8Array): Record<string, unknown> {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    const payload = parseBoundedJson(text, fileBounds)
    if (isObject(payload)) return payload
  } catch {
    // The refusal follows.
  }
  throw new SignatureProblem('what is signed is not a JSON object')
}

/** Returns the `kid` of a compact JWS of ours; nothing of it is verified yet. */
function readHeader(jws: string, typ: string): string {
  const parts = jws.split('.')
  if (parts.length !== 3 || !parts.every(isCanonicalBase64url)) {
    throw new SignatureProblem('it is not a compact JWS')
  }
  let header: ReturnType<typeof decodeProtectedHeader>
  try {
    header = decodeProtectedHeader(jws)
  } catch {
    throw new SignatureProblem('it is not a compact JWS')
  }
  if (header.alg !== algorithm) throw new SignatureProblem(`its algorithm is not ${algorithm}`)
  if (header.typ !== typ) throw new SignatureProblem(`it is not of the type ${typ}`)
  if (typeof header.kid !== 'string') throw new SignatureProblem('it does not name its key')
  return header.kid
}

/** Without this check, the unused bits of a last character could be changed unnoticed. */
function isCanonicalBase64url(text: string): boolean {
  try {
    return text !== '' && base64url.encode(base64url.decode(text)) === text
  } catch {
    return false
  }
}

function publicPart(key: unknown, kid: string): string | null {
  if (!isObject(key) || key.kid !== kid || key.kty !== 'OKP' || key.crv !== 'Ed25519') return null
  return typeof key.x === 'string' ? key.x : null
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
