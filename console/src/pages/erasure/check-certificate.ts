// Checks the signature of a certificate in the browser, and that the signed statements equal the shown ones.
// Neither check uses the other fields of the response.

import canonicalize from 'canonicalize'
import { type CertificateAnswer, certificateType } from '../../../../contract/deletion/certificate.ts'
import type { DeletionRequest } from '../../../../contract/deletion/requests.ts'

type Check =
  | { readonly kind: 'valid'; readonly keyId: string }
  | { readonly kind: 'invalid'; readonly reason: string }
  /** Over plain http a browser has no functions for signatures. */
  | { readonly kind: 'no_crypto' }

interface Keys {
  readonly keys: readonly { readonly kid: string }[]
}

/** @param request the erasure that the page shows */
export async function checkCertificate(
  { certificate, jws }: CertificateAnswer,
  { keys }: Keys,
  request: DeletionRequest,
): Promise<Check> {
  if (crypto.subtle === undefined) return { kind: 'no_crypto' }
  const { compactVerify, importJWK } = await import('jose')
  try {
    const { payload, protectedHeader } = await compactVerify(
      jws,
      async ({ kid }) => {
        const key = keys.find((one) => one.kid === kid)
        if (key === undefined) throw new Error('It is signed by a key that this service does not publish.')
        return importJWK({ ...key, alg: 'EdDSA' }, 'EdDSA')
      },
      { algorithms: ['EdDSA', 'Ed25519'] },
    )
    if (protectedHeader.typ !== certificateType) return invalid('It is the signature of something else.')
    if (new TextDecoder().decode(payload) !== canonicalize(certificate))
      return invalid('The signed statements differ from the ones in the response.')
    if (!isAbout(certificate, request)) return invalid('It is about another request than this page shows.')
    return { kind: 'valid', keyId: protectedHeader.kid ?? '' }
  } catch (error) {
    return invalid(error instanceof Error ? error.message : 'The signature could not be read.')
  }
}

function invalid(reason: string): Check {
  return { kind: 'invalid', reason }
}

/** Whether the statements have the request, its selection and its three clocks. */
function isAbout(
  { request: named, times }: CertificateAnswer['certificate'],
  shown: DeletionRequest,
): boolean {
  return (
    named.request_id === shown.request_id &&
    named.range_start === shown.range_start &&
    named.range_end === shown.range_end &&
    named.signals.join() === shown.signals.join() &&
    times.hidden_at === shown.hidden_at &&
    times.removed_at === shown.removed_at &&
    times.verified_at === shown.verified_at
  )
}
