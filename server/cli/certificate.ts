// `lethe certificate verify`: verifies a deletion certificate on any machine, without a service and without a
// network. Exit codes are for scripts: 0 valid, 1 not valid, 2 no trusted key was given to verify it.

import { readFileSync } from 'node:fs'
import type { DeletionCertificate } from '../../contract/deletion/certificate.ts'
import type { Config } from '../config.ts'
import { CertificateProblem, checkCertificate } from '../deletion/certificate/check.ts'
import { exitCodes } from './failure.ts'
import { type JsonOption, print, printJson } from './print.ts'
import { findTrustedKeys } from './trusted-keys.ts'

/** Returns the exit code. */
export async function verifyCertificate(
  config: Config,
  file: string,
  options: JsonOption & { readonly jwks?: string },
): Promise<number> {
  const text = readFileSync(file, 'utf8')
  const trusted = await findTrustedKeys(config, options.jwks)
  if (trusted === null) {
    const problem =
      'no trusted key was given. Use --jwks KEYS with the public keys of the service that issued it, which it publishes at /.well-known/jwks.json.'
    if (options.json) printJson({ file, verdict: 'not_checked', problem, kid: null, certificate: null })
    else print(`${file}: NOT CHECKED: ${problem}`)
    return exitCodes.notVouchedFor
  }
  try {
    const { certificate, kid } = await checkCertificate(text, trusted)
    if (options.json) printJson({ file, verdict: 'holds', problem: null, kid, certificate })
    else for (const line of [`${file}: the certificate is valid`, ...summaryOf(certificate, kid)]) print(line)
    return 0
  } catch (error) {
    if (!(error instanceof CertificateProblem)) throw error
    const problem = error.message
    if (options.json) printJson({ file, verdict: 'does_not_hold', problem, kid: null, certificate: null })
    else print(`${file}: NOT VALID: ${problem}`)
    return 1
  }
}

function summaryOf(certificate: DeletionCertificate, kid: string): string[] {
  const { erasure, ledger, organisation, request, times, verification } = certificate
  const range =
    request.scope === 'all'
      ? 'everything'
      : `from ${request.range_start ?? 'the beginning'} to ${request.range_end}`
  const lines: readonly (readonly [name: string, value: string])[] = [
    ['number', certificate.jti],
    ['organisation', organisation.tenant_id],
    ['erased', `${request.signals.join(', ')}, ${range}: ${erasure.rows} rows`],
    ['left', `${verification.rows_remaining} rows in ${Object.keys(verification.stores).length} stores`],
    ['requested', `${times.requested_at} by ${request.requested_by}`],
    [
      'approved',
      times.approved_at === null ? 'not required' : `${times.approved_at} by ${request.approved_by}`,
    ],
    ['hidden', times.hidden_at],
    ['removed', times.removed_at],
    ['verified', times.verified_at],
    ['backups', times.backups_clear_by === null ? 'none known' : `clear by ${times.backups_clear_by}`],
    ['ledger', `entry ${ledger.seq}, hash ${ledger.hash}`],
    ['signed by', kid],
  ]
  return lines.map(([name, value]) => `  ${name.padEnd(13)} ${value}`)
}
