// The deletion certificate on the wire: statements about an erasure that was read back, and the signature
// over them. The fields follow the certificate of NIST SP 800-88 as far as they apply to rows in a shared
// store; it says Clear and never Purge. It contains ids, bounds, counts and times: no telemetry, and not the
// note of the request.

import { z } from 'zod'
import { Instant } from '../values/fields.ts'
import { DeletionScope, deletionReasons, SignalName } from './requests.ts'

/**
 * `typ` of the signature's header. It prevents that a statement of another kind, signed with the same key, is
 * accepted as a certificate.
 */
export const certificateType = 'deletion-certificate+jws'

export const certificateVersion = 1

/**
 * Where the public keys of the signatures are published. A path without a host, so that it is valid behind
 * any host name.
 */
export const jwksUri = '/.well-known/jwks.json'

const Sha256 = z.string().describe('SHA-256, hexadecimal.')

export const erasureMethods = [
  'partition_dropped',
  'partition_rewritten',
  'partition_settled_after_crash',
  'rows_removed',
] as const

const ErasedStore = z.looseObject({
  store: z.string().describe('A telemetry table, or `anomalies`.'),
  method: z
    .enum(erasureMethods)
    .describe(
      'partition_dropped: no row of the organisation is left in the partition. partition_rewritten: the partition was copied without the selected rows. partition_settled_after_crash: dropped or rewritten by an attempt that ended before it recorded which. rows_removed: removed row by row; among anomalies, expectations that were learnt from the range are removed too.',
    ),
  partitions: z.int(),
  rows: z.int(),
  bytes: z
    .int()
    .describe(
      'Compressed bytes on disk; where a placement was shared, an estimate from the organisation’s own rows.',
    ),
})

const CoveredBackup = z.looseObject({
  backup_id: z.string(),
  taken_at: Instant.nullable().describe('Null while it is being taken.'),
  expires_at: Instant,
})

export const DeletionCertificate = z
  .looseObject({
    iss: z.string().describe('The service that signs: `lethe:instance:` and `issuer.instance_sha256`.'),
    iat: z.int().describe('Seconds since 1970; `issued_at` to the second.'),
    jti: z
      .string()
      .describe(
        'The request, the certified ledger entry and the time of issue, such as `del_…/3-9f1c2b7a-mibk3x2o`.',
      ),
    certificate_version: z.literal(certificateVersion),
    issued_at: Instant,
    supersedes: z
      .string()
      .nullable()
      .describe('`jti` of the previous certificate, where the request was carried out again after it.'),
    issuer: z
      .looseObject({
        instance_sha256: Sha256,
        service: z.string(),
        service_version: z.string(),
        schema_version: z.string(),
        engine: z.string(),
        engine_version: z.string(),
      })
      .describe('The service that signed, as it was at the time of issue.'),
    organisation: z.looseObject({
      tenant_id: z.string(),
      name_sha256: Sha256.describe('SHA-256 of the name in UTF-8, hexadecimal.'),
    }),
    request: z.looseObject({
      request_id: z.string(),
      scope: DeletionScope,
      signals: z.array(SignalName),
      range_start: Instant.nullable().describe('Inclusive; null where there is no lower bound.'),
      range_end: Instant.nullable().describe('Exclusive; null on a full erasure.'),
      reason: z.enum(deletionReasons).nullable(),
      requested_by: z.string(),
      approved_by: z.string().nullable(),
    }),
    times: z.looseObject({
      requested_at: Instant,
      approved_at: Instant.nullable(),
      hidden_at: Instant,
      removed_at: Instant,
      verified_at: Instant,
      backups_clear_by: Instant.nullable().describe(
        'When the last backup listed here expires; null where none was known.',
      ),
    }),
    erasure: z
      .looseObject({
        category: z.string(),
        executed_by: z.string(),
        erased_with: z
          .string()
          .nullable()
          .describe(
            'The other request that erased this selection together with its own; null where this request erased it.',
          ),
        rows: z.int(),
        bytes: z.int(),
        stores: z.array(ErasedStore).describe('Stores that contained selected rows.'),
      })
      .describe('What was erased, over all attempts.'),
    verification: z.looseObject({
      verified_by: z.string(),
      method: z.string(),
      rows_remaining: z.literal(0),
      stores: z.record(z.string(), z.literal(0)).describe('Rows found per store by the read-back.'),
    }),
    backups: z.array(CoveredBackup).describe('Known backups that may contain a copy.'),
    exclusions: z
      .array(z.string())
      .describe(
        'What the certificate does not cover, a sentence each. Where the control plane is on PostgreSQL, also its write-ahead log, archives, standbys, dumps and log files.',
      ),
    late_data: z.looseObject({
      rule: z.enum(['accepted_as_new', 'refused']),
      meaning: z.string(),
    }),
    ledger: z
      .looseObject({ seq: z.int(), hash: Sha256 })
      .describe('The entry of the organisation’s ledger that completed the request.'),
  })
  .describe('The statements that are certified.')
  .meta({ id: 'DeletionCertificate' })
export type DeletionCertificate = z.infer<typeof DeletionCertificate>

export const CertificateAnswer = z
  .object({
    request_id: z.string(),
    issued_at: Instant,
    certificate: DeletionCertificate,
    jws: z
      .string()
      .describe(
        `Compact JWS (RFC 7515), EdDSA with Ed25519, \`typ\` \`${certificateType}\`, over the RFC 8785 form of \`certificate\`.`,
      ),
    jwks_uri: z.literal(jwksUri).describe('Where the public keys are. Fetch them once and keep them.'),
  })
  .describe('The certificate and its signature; every request returns the same bytes.')
  .meta({ id: 'CertificateAnswer' })
export type CertificateAnswer = z.infer<typeof CertificateAnswer>

export const CertificateQuery = z.strictObject({
  format: z
    .enum(['json', 'html'])
    .optional()
    .describe('`html` is a page to print. Where absent, the Accept header decides, and the default is JSON.'),
})
