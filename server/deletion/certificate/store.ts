// Issues certificates and stores them: one per request, at the first call, and the same bytes afterwards. A
// certificate names the ledger entry that completed its request. Where a restore made the service carry out a
// request again, there is no certificate until a newer entry completes it; then a new certificate names the
// stored one as superseded and replaces it. Certificates that were handed out before stay validly signed.

import { certificateType, DeletionCertificate } from '../../../contract/deletion/certificate.ts'
import { hashOf } from '../../audit/chain.ts'
import { readUnverified } from '../../audit/jws.ts'
import { appendAudit } from '../../audit/log.ts'
import type { SigningKeys } from '../../audit/signing.ts'
import { lockForAct } from '../../control/acting.ts'
import type { Control, ControlTransaction } from '../../control/database.ts'
import { dialectOf } from '../../control/dialect.ts'
import { transact } from '../../control/transaction.ts'
import type { Actor } from '../../core/actor.ts'
import { AppError } from '../../core/app-error.ts'
import type { Clock } from '../../core/clock.ts'
import { StepStore, type StepSum } from '../attempt/step-store.ts'
import { requireRow } from '../requests/queries.ts'
import { type KnownBackup, type RequestRow, toStored } from '../requests/request.ts'
import { isFinal, workingStatuses } from '../requests/states.ts'
import { buildCertificate, type Completion, type Issuer } from './certificate.ts'

interface CertificateDeps {
  readonly control: Control
  readonly clock: Clock
  readonly keys: Pick<SigningKeys, 'sign'>
  /** Names of the stores of derived telemetry that a read-back has to count. */
  readonly derivedStores: readonly string[]
  /** Returns known backups that may have a copy of what this request erased. */
  readonly findBackups: (requestId: string) => Promise<readonly KnownBackup[]>
  /** Where the database of the control plane can have erased bytes, as sentences. */
  readonly notReached: () => Promise<readonly string[]>
  readonly issuer: () => Promise<Issuer>
}

export interface IssuedCertificate {
  readonly certificate: DeletionCertificate
  readonly jws: string
  /** The key that signed, by its RFC 7638 thumbprint. */
  readonly kid: string
}

/** A completed request with everything that its certificate is made of, read at one moment. */
interface CompletedRequest {
  readonly request: RequestRow
  readonly organisationName: string
  readonly steps: readonly StepSum[]
  readonly completion: Completion
  /** The stored certificate, which may be of an earlier completion. */
  readonly kept: IssuedCertificate | null
}

/** Retry-After in seconds, while the service works and while it waits for something. */
const lookAgainSeconds = { working: 1, waiting: 60 }

export class CertificateStore {
  readonly #deps: CertificateDeps

  constructor(deps: CertificateDeps) {
    this.#deps = deps
  }

  /**
   * Returns the certificate of a completed request. Throws `not_found` for an unknown id, and for one of
   * another organisation alike; `not_verified` in every other state.
   */
  async issue(tenantId: string, requestId: string, actor: Actor): Promise<IssuedCertificate> {
    const { clock, findBackups, control, derivedStores, issuer, keys, notReached } = this.#deps
    const completed = await dialectOf(control).snapshot(control, (snapshot) =>
      readCompleted(snapshot, tenantId, requestId),
    )
    if (isCurrent(completed)) return completed.kept
    const certificate = buildCertificate({
      ...completed,
      derivedStores,
      notReached: await notReached(),
      issuer: await issuer(),
      backups: await findBackups(requestId),
      supersedes: completed.kept?.certificate.jti ?? null,
      issuedAtMs: clock.nowMs(),
    })
    return this.#keep(completed, readIssued(await keys.sign(certificate, certificateType)), actor)
  }

  /** Stores it, unless another one was stored, or the request was moved, while this one was made. */
  async #keep(
    { request, completion }: CompletedRequest,
    made: IssuedCertificate,
    actor: Actor,
  ): Promise<IssuedCertificate> {
    const { tenant_id, request_id } = request
    return transact(this.#deps.control, async (trx) => {
      const nowMs = this.#deps.clock.nowMs()
      await lockForAct(trx, { tenantId: tenant_id, actor }, nowMs)
      const now = await readCompleted(trx, tenant_id, request_id)
      if (isCurrent(now)) return now.kept
      if (now.completion.hash !== completion.hash) throw notVerified('running')
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
  control: Control | ControlTransaction,
  tenantId: string,
  requestId: string,
): Promise<CompletedRequest> {
  const request = await requireRow(control, tenantId, requestId)
  const { status } = toStored(request)
  if (status !== 'completed' || request.verified_at_ms === null) throw notVerified(status)
  const { name } = await control
    .selectFrom('organisations')
    .select('name')
    .where('tenant_id', '=', tenantId)
    .executeTakeFirstOrThrow()
  const kept = await control
    .selectFrom('certificates')
    .select('jws')
    .where('tenant_id', '=', tenantId)
    .where('request_id', '=', requestId)
    .executeTakeFirst()
  return {
    request,
    organisationName: name,
    steps: await new StepStore(control).sums(requestId),
    completion: await completionOf(control, tenantId, requestId),
    kept: kept === undefined ? null : readIssued(kept.jws),
  }
}

/** Returns the newest entry that completed the request. */
async function completionOf(
  control: Control | ControlTransaction,
  tenantId: string,
  requestId: string,
): Promise<Completion> {
  const entries = await control
    .selectFrom('ledger_entries')
    .select(['seq', 'hash', 'entry'])
    .where('tenant_id', '=', tenantId)
    .where(dialectOf(control).jsonField('entry', 'request_id'), '=', requestId)
    .orderBy('seq', 'desc')
    .execute()
  const found = entries.find(({ entry }) => JSON.parse(entry).to_status === 'completed')
  if (found === undefined) throw new Error(`The ledger does not show how ${requestId} was completed.`)
  return { seq: found.seq, hash: found.hash }
}

/** Reads the payload of one of our own signatures. */
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
