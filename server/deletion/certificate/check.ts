// Checks a certificate without the service: the signature with keys that the reader trusts, and that
// everything else in the file equals what is signed. Keys are never read from the file, because somebody who
// changes the file could add one.

import { Buffer } from 'node:buffer'
import canonicalize from 'canonicalize'
import {
  CertificateAnswer,
  certificateType,
  DeletionCertificate,
  jwksUri,
} from '../../../contract/deletion/certificate.ts'
import { SignatureProblem, verifyJws } from '../../audit/jws.ts'
import { readJsonBody } from '../../core/input/json-body.ts'
import { fileBounds } from '../../core/input/json-bounds.ts'

/** What is wrong, and where. May quote the file. */
export class CertificateProblem extends Error {
  override readonly name = 'CertificateProblem'
}

interface CheckedCertificate {
  readonly certificate: DeletionCertificate
  /** The key that signed, by its RFC 7638 thumbprint. */
  readonly kid: string
}

/**
 * Takes the JSON answer of the service, or the JWS alone, also with the line breaks of the printed page.
 * Throws {@link CertificateProblem} for the first thing that is wrong.
 */
export async function checkCertificate(
  text: string,
  jwks: { readonly keys: readonly unknown[] },
): Promise<CheckedCertificate> {
  const trimmed = text.trim()
  if (trimmed.startsWith('<')) {
    throw new CertificateProblem(
      'this is a page for people: give the JSON form, or the text of its signature alone',
    )
  }
  if (!trimmed.startsWith('{')) return checkSignature(trimmed.replace(/\s+/g, ''), jwks)
  const answer = readAnswer(trimmed)
  const checked = await checkSignature(answer.jws, jwks)
  requireSame(checked.certificate, answer.certificate, ['certificate'])
  requireSame(checked.certificate.request.request_id, answer.request_id, ['request_id'])
  requireSame(checked.certificate.issued_at, answer.issued_at, ['issued_at'])
  return checked
}

async function checkSignature(
  jws: string,
  jwks: { readonly keys: readonly unknown[] },
): Promise<CheckedCertificate> {
  try {
    const { payload, kid } = await verifyJws(jws, jwks, certificateType)
    const read = DeletionCertificate.safeParse(payload)
    if (!read.success) {
      throw new CertificateProblem('what is signed is not a certificate that this version knows')
    }
    return { certificate: read.data, kid }
  } catch (error) {
    if (error instanceof SignatureProblem) throw new CertificateProblem(`jws: ${error.message}`)
    throw error
  }
}

/** Reads the fields of the answer; the certificate itself stays unparsed. */
function readAnswer(text: string): Record<string, unknown> & { readonly jws: string } {
  const { value, problems } = readJsonBody(Buffer.from(text, 'utf8'), fileBounds)
  const [first] = problems
  if (first !== undefined) throw new CertificateProblem(`${first.loc.slice(1).join('.')}: ${first.msg}`)
  const answer = new Map<string, unknown>(Object.entries(Object(value)))
  const names = Object.keys(CertificateAnswer.shape)
  const missing = names.find((name) => !answer.has(name))
  if (missing !== undefined) throw new CertificateProblem(`${missing}: it is missing`)
  const unknown = [...answer.keys()].find((name) => !names.includes(name))
  if (unknown !== undefined) throw new CertificateProblem(`${unknown}: a certificate has no such field`)
  requireSame(jwksUri, answer.get('jwks_uri'), ['jwks_uri'])
  const jws = answer.get('jws')
  if (typeof jws !== 'string') throw new CertificateProblem('jws: it is not a text')
  return { ...Object.fromEntries(answer), jws }
}

/** Compares in RFC 8785 form and returns the first path that differs. */
function requireSame(signed: unknown, given: unknown, path: readonly string[]): void {
  if (canonicalize(signed) === canonicalize(given)) return
  if (isRecord(signed) && isRecord(given)) {
    for (const name of new Set([...Object.keys(signed), ...Object.keys(given)])) {
      const [ofSigned, ofGiven] = [own(signed, name), own(given, name)]
      requireSame(ofSigned, ofGiven, [...path, name])
    }
  }
  throw new CertificateProblem(
    `${path.join('.')}: the file says ${textOf(given)}, but ${textOf(signed)} is signed`,
  )
}

function textOf(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value)
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}

function own(record: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(record, name) ? record[name] : undefined
}

/** Arrays are compared as records of their indexes. */
function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
