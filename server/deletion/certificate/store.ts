// Issues certificates and keeps them: one per request, made when somebody first asks, the same bytes ever after.
// A certificate names the ledger entry that completed its request. Where a request was carried out again, because
// an older state was restored, there is no certificate until it is completed again; then a newer entry completes
// it, and a new certificate supersedes the kept one by name. What was handed out before keeps its signature.

import { certificateType, DeletionCertificate } from '../../../contract/certificate.ts'
import { hashOf } from '../../audit/chain.ts'
import { readUnverified } from '../../audit/jws.ts'
import { appendAudit } from '../../audit/log.ts'
import type { SigningKeys } from '../../audit/signing.ts'
import type { Control, ControlTransaction } from '../../control/database.ts'
import { AppError } from '../../core/app-error.ts'
import type { Clock } from '../../core/clock.ts'
import { StepStore, type StoredStep } from '../attempt/step-store.ts'
import { requireRow } from '../requests/queries.ts'
import { type RequestRow, toStored } from '../requests/request.ts'
import { isFinal, workingStatuses } from '../requests/states.ts'
import { buildCertificate, type Completion, type CoveredBackup, type Issuer } from './certificate.ts'

interface CertificateDeps {
  readonly control: Control
  readonly clock: Clock
  readonly keys: Pick<SigningKeys, 'sign'>
  /** Names of the stores of derived telemetry that a read-back has to count. */
  readonly derivedStores: readonly string[]
  /** Known backups that may hold what this completed request has erased. */
  readonly backupsHolding: (requestId: string) => Promise<readonly CoveredBackup[]>
  readonly issuer: () => Promise<Issuer>
}

export interface IssuedCertificate {
  readonly certificate: DeletionCertificate
  readonly jws: string
  /** The key that signed, by its RFC 7638 thumbprint. */
  readonly kid: string
}

/** A completed request with everything about it that a certificate is made of, read at one moment. */
interface CompletedRequest {
  readonly request: RequestRow
  readonly organisationName: string
  readonly steps: readonly StoredStep[]
  readonly completion: Completion
  /** The certificate that is kept, which may be of an earlier completion. */
  readonly kept: IssuedCertificate | null
}

/** Seconds after which asking again is worth it, while the service works and while it waits for something. */
const lookAgainSeconds = { working: 1, waiting: 60 }

export class CertificateStore {
  readonly #deps: CertificateDeps

  constructor(deps: CertificateDeps) {
    this.#deps = deps
  }

  /**
   * The certificate of a completed request. Throws `not_found` alike for an unknown id and another organisation's,
   * `not_verified` in every state but `completed`.
   */
  async issue(tenantId: string, requestId: string, actor: string): Promise<IssuedCertificate> {
    const { clock, backupsHolding, control, derivedStores, issuer, keys } = this.#deps
    const read = () => control.transaction().execute((trx) => readCompleted(trx, tenantId, requestId))
    const completed = await read()
    if (isCurrent(completed)) return completed.kept
    const certificate = buildCertificate({
      ...completed,
      derivedStores,
      issuer: await issuer(),
      backups: await backupsHolding(requestId),
      supersedes: completed.kept?.certificate.jti ?? null,
      issuedAtMs: clock.nowMs(),
    })
    return this.#keep(completed, readIssued(await keys.sign(certificate, certificateType)), actor)
  }

  /** Keeps it unless another one was kept, or the request was moved on, while this one was made. */
  async #keep(
    { request, completion }: CompletedRequest,
    made: IssuedCertificate,
    actor: string,
  ): Promise<IssuedCertificate> {
    const { tenant_id, request_id } = request
    return this.#deps.control.transaction().execute(async (trx) => {
      const now = await readCompleted(trx, tenant_id, request_id)
      if (isCurrent(now)) return now.kept
      if (now.completion.hash !== completion.hash) throw notVerified('running')
      const nowMs = this.#deps.clock.nowMs()
      await trx.deleteFrom('certificates').where('request_id', '=', request_id).execute()
      await trx
        .insertInto('certificates')
        .values({ request_id, tenant_id, jws: made.jws, issued_at_ms: nowMs })
        .execute()
      await appendAudit(trx, tenant_id, nowMs, {
        actor,
        action: 'certificate.issued',
        target: request_id,
        outcome: 'accepted',
        facts: { jti: made.certificate.jti, jws_sha256: hashOf(made.jws) },
      })
      return made
    })
  }
}

function isCurrent(
  completed: CompletedRequest,
): completed is CompletedRequest & { readonly kept: IssuedCertificate } {
  return completed.kept?.certificate.ledger.hash === completed.completion.hash
}

async function readCompleted(
  trx: ControlTransaction,
  tenantId: string,
  requestId: string,
): Promise<CompletedRequest> {
  const request = await requireRow(trx, tenantId, requestId)
  const { status } = toStored(request)
  if (status !== 'completed' || request.verified_at_ms === null) throw notVerified(status)
  const { name } = await trx
    .selectFrom('organisations')
    .select('name')
    .where('tenant_id', '=', tenantId)
    .executeTakeFirstOrThrow()
  const kept = await trx
    .selectFrom('certificates')
    .select('jws')
    .where('tenant_id', '=', tenantId)
    .where('request_id', '=', requestId)
    .executeTakeFirst()
  return {
    request,
    organisationName: name,
    steps: await new StepStore(trx).list(requestId),
    completion: await completionOf(trx, tenantId, requestId),
    kept: kept === undefined ? null : readIssued(kept.jws),
  }
}

/** The newest entry that completed the request. */
async function completionOf(
  trx: ControlTransaction,
  tenantId: string,
  requestId: string,
): Promise<Completion> {
  // The text of an entry is canonical, so this finds all of the request's; what else it finds is passed over below.
  const entries = await trx
    .selectFrom('ledger_entries')
    .select(['seq', 'hash', 'entry'])
    .where('tenant_id', '=', tenantId)
    .where('entry', 'like', `%"request_id":"${requestId}"%`)
    .orderBy('seq', 'desc')
    .execute()
  const found = entries.find(({ entry }) => {
    const { request_id, to_status } = JSON.parse(entry)
    return request_id === requestId && to_status === 'completed'
  })
  if (found === undefined) throw new Error(`The ledger does not show how ${requestId} was completed.`)
  return { seq: found.seq, hash: found.hash }
}

/** What one of our own signatures is over. */
function readIssued(jws: string): IssuedCertificate {
  const { payload, kid } = readUnverified(jws, certificateType)
  return { certificate: DeletionCertificate.parse(payload), jws, kid }
}

function notVerified(status: ReturnType<typeof toStored>['status']): AppError {
  const isWorking = workingStatuses.some((working) => working === status)
  return new AppError('not_verified', {
    sentence: `The deletion is ${status}; there is a certificate only once it is completed and verified.`,
    ...(!isFinal(status) && {
      retryAfterSeconds: isWorking ? lookAgainSeconds.working : lookAgainSeconds.waiting,
    }),
  })
}
