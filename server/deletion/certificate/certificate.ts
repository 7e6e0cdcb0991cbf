// Builds a deletion certificate from the stored record, as a pure function. It certifies nothing that the
// record does not show: it throws where the request is not completed, a store was not counted, or a row is
// left. It says Clear, never Purge: rows were removed from stores and not found again, and no medium was
// sanitised.

import {
  certificateVersion,
  type DeletionCertificate,
  type erasureMethods,
} from '../../../contract/deletion/certificate.ts'
import type { deletionReasons } from '../../../contract/deletion/requests.ts'
import { formatInstant } from '../../../contract/values/instant.ts'
import { hashOf } from '../../audit/chain.ts'
import { actorTextIn, laterActorTextIn } from '../../control/actor-columns.ts'
import { instantText } from '../../core/clock.ts'
import { tablesOf } from '../../telemetry/schema/tables.ts'
import type { StepSum } from '../attempt/step-store.ts'
import {
  type KnownBackup,
  noProgress,
  type RequestRow,
  type StoredDeletion,
  toStored,
} from '../requests/request.ts'

/** The ledger entry that completed a request. */
export interface Completion {
  readonly seq: number
  readonly hash: string
}

/** What issues certificates. */
export interface Issuer {
  /** What the service is known by, in hexadecimal; it says nothing of the secret that it comes from. */
  readonly instanceSha256: string
  readonly serviceVersion: string
  readonly schemaVersion: string
  readonly engineVersion: string
}

export interface CertificateFacts {
  readonly issuer: Issuer
  readonly organisationName: string
  readonly request: RequestRow
  /** Sums of the finished steps. */
  readonly steps: readonly StepSum[]
  readonly completion: Completion
  /** Names of the stores of derived telemetry that a read-back has to count. */
  readonly derivedStores: readonly string[]
  readonly backups: readonly KnownBackup[]
  /** Where the database of the control plane can have erased bytes, as sentences. */
  readonly notReached: readonly string[]
  /** `jti` of the certificate of this request before; null where there is none. */
  readonly supersedes: string | null
  readonly issuedAtMs: number
}

type ErasedStore = DeletionCertificate['erasure']['stores'][number]
type Method = (typeof erasureMethods)[number]

/**
 * Returns the number of the certificate: the ledger entry that it certifies, and the time of issue. A control
 * plane that was restored from before the first certificate issues another one of the same entry, which needs
 * another number (RFC 7519 section 4.1.7).
 */
function numberOf({ completion, issuedAtMs, request }: CertificateFacts): string {
  return `${request.request_id}/${completion.seq}-${completion.hash.slice(0, 8)}-${issuedAtMs.toString(36)}`
}

/**
 * The method of a finished step by its recorded action. A step that found nothing erased nothing, and is not
 * in the certificate.
 */
const methods: ReadonlyMap<string, Method> = new Map([
  ['dropped', 'partition_dropped'],
  ['rewritten', 'partition_rewritten'],
  ['found_done', 'partition_settled_after_crash'],
  ['removed', 'rows_removed'],
])

export function buildCertificate(facts: CertificateFacts): DeletionCertificate {
  const { issuer, request, completion } = facts
  const read = toStored(request)
  // A request that an older version completed lacks counts that were added later.
  const stored = { ...read, progress: { ...noProgress, ...read.progress } }
  const clearByMs = facts.backups.map(({ expires_at_ms }) => expires_at_ms)
  return {
    iss: `lethe:instance:${issuer.instanceSha256}`,
    iat: Math.floor(facts.issuedAtMs / 1000),
    jti: numberOf(facts),
    certificate_version: certificateVersion,
    issued_at: instantText(facts.issuedAtMs),
    supersedes: facts.supersedes,
    issuer: {
      instance_sha256: issuer.instanceSha256,
      service: 'Lethe',
      service_version: issuer.serviceVersion,
      schema_version: issuer.schemaVersion,
      engine: 'ClickHouse (chDB, embedded)',
      engine_version: issuer.engineVersion,
    },
    organisation: { tenant_id: request.tenant_id, name_sha256: hashOf(facts.organisationName) },
    request: selectionOf(request, stored),
    times: {
      ...timesOf(request),
      backups_clear_by: clearByMs.length === 0 ? null : instantText(Math.max(...clearByMs)),
    },
    erasure: erasureOf(stored, facts.steps),
    verification: verificationOf(stored, facts.derivedStores),
    backups: facts.backups.map(({ backup_id, taken_at_ms, expires_at_ms }) => ({
      backup_id,
      taken_at: taken_at_ms === null ? null : instantText(taken_at_ms),
      expires_at: instantText(expires_at_ms),
    })),
    exclusions: exclusionsOf(facts),
    late_data: stored.refuseLate ? refused : acceptedAsNew,
    ledger: { seq: completion.seq, hash: completion.hash },
  }
}

function selectionOf(request: RequestRow, { range, ...stored }: StoredDeletion) {
  return {
    request_id: request.request_id,
    scope: stored.scope,
    signals: [...stored.signals],
    range_start: range.startNs === null ? null : formatInstant(range.startNs),
    range_end: range.endNs === null ? null : formatInstant(range.endNs),
    reason: request.reason as (typeof deletionReasons)[number] | null,
    requested_by: actorTextIn('requested_by', request),
    approved_by: laterActorTextIn('approved_by', request),
  }
}

function timesOf(request: RequestRow) {
  const { hidden_at_ms: hiddenAtMs, removed_at_ms: removedAtMs, verified_at_ms: verifiedAtMs } = request
  if (request.status !== 'completed' || hiddenAtMs === null || removedAtMs === null || verifiedAtMs === null)
    throw new Error(`The deletion ${request.request_id} is not completed and verified.`)
  return {
    requested_at: instantText(request.created_at_ms),
    approved_at: request.approved_at_ms === null ? null : instantText(request.approved_at_ms),
    hidden_at: instantText(hiddenAtMs),
    removed_at: instantText(removedAtMs),
    verified_at: instantText(verifiedAtMs),
  }
}

function erasureOf({ progress }: StoredDeletion, steps: readonly StepSum[]) {
  const stores = erasedStores(steps)
  const sum = (pick: (store: ErasedStore) => number) =>
    stores.reduce((total, store) => total + pick(store), 0)
  return {
    category: 'Clear (logical removal and verification)',
    executed_by: 'system:deletion',
    erased_with: progress.erased_by,
    rows: sum(({ rows }) => rows),
    bytes: sum(({ bytes }) => bytes),
    stores,
  }
}

/** Returns the stores in the order in which they were first erased from, each with its methods. */
function erasedStores(steps: readonly StepSum[]): ErasedStore[] {
  return steps.flatMap(({ store, action, partitions, rows, bytes }) => {
    const method = methods.get(action)
    return method === undefined ? [] : [{ store, method, partitions, rows, bytes }]
  })
}

function verificationOf({ requestId, signals, progress }: StoredDeletion, derivedStores: readonly string[]) {
  const counted = progress.left_over ?? {}
  const expected = [...tablesOf(signals).map(({ name }) => name), ...derivedStores]
  const uncounted = expected.filter((store) => !Object.hasOwn(counted, store))
  if (uncounted.length > 0) throw new Error(`The read-back of ${requestId} lacks ${uncounted.join(', ')}.`)
  const left = Object.entries(counted).filter(([, rows]) => rows !== 0)
  if (left.length > 0 || progress.held_by.length > 0) {
    throw new Error(`The deletion ${requestId} is completed although something of it is left.`)
  }
  return {
    verified_by: 'separate read-back code, which shares no statement with the eraser',
    method: 'full re-count of every store, by organisation and time',
    rows_remaining: 0 as const,
    stores: Object.fromEntries(Object.keys(counted).map((store) => [store, 0 as const])),
  }
}

function exclusionsOf({ backups, notReached }: CertificateFacts): string[] {
  return [
    'Blocks that the file system has freed but not yet overwritten.',
    'Copies of the data folder that an operator made and that are not registered as backups.',
    'Memory that the machine itself wrote to a disk: core dumps, swap, hibernation images.',
    backups.length > 0
      ? 'The backups listed here, each until it is removed.'
      : 'Backups that are not registered: no registered one may contain a copy.',
    'Copies that left this service before: exports, answers to queries, whatever senders forwarded elsewhere.',
    'Log files of this service: they contain no telemetry, but an error may quote what somebody searched for.',
    ...notReached,
    'The record of the erasure itself (request, ledger, audit log, this certificate): ids, bounds and counts.',
  ]
}

const acceptedAsNew = {
  rule: 'accepted_as_new' as const,
  meaning:
    'what arrives for the erased time after the verification is accepted as something new, which this does not cover.',
}

const refused = {
  rule: 'refused' as const,
  meaning:
    'what arrives after the verification for the erased time before it is refused; later time, also where the range includes it, is accepted as something new, which this does not cover.',
}
