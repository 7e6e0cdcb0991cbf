// Deletion requests: creating, reading and deciding them, verification, and certificates. For owners and
// admins.

import { z } from 'zod'
import { CertificateAnswer, CertificateQuery } from '../deletion/certificate.ts'
import {
  CreateDeletion,
  DeletionListQuery,
  DeletionParams,
  DeletionPreview,
  DeletionRequest,
  PreviewDeletion,
  ReadBackResult,
  RejectDeletion,
  StalePreview,
} from '../deletion/requests.ts'
import {
  approvedDeletionExample,
  cancelledDeletionExample,
  certificateExample,
  completedDeletionExample,
  createDeletionExample,
  deletionPreviewExample,
  previewDeletionExample,
  readBackExample,
  rejectDeletionExample,
  rejectedDeletionExample,
  retriedDeletionExample,
  runningDeletionExample,
} from '../examples/deletions.ts'
import { type Operation, operation } from '../operation.ts'
import { administrators } from '../role.ts'
import { NoBody, pageOf } from '../values/fields.ts'

/**
 * A request stays for ever: as a row, in both chains, in the journal, and in memory as time that is unknown.
 * A script can erase each day of a year without a pause, and then as often as it may preview a range. They
 * begin as fast as small ones are carried out: each takes some ten milliseconds of the event loop.
 */
const createRate = { perMinute: 20, burst: 400, pace: { atOnce: 5, perSecond: 4 } }

/**
 * Each is an entry of both chains for ever, and a retry is an attempt. As many at once as may be created, so
 * that a second person can approve what a script has requested.
 */
const decisionRate = { perMinute: 60, burst: 400 }

/** Each preview reads a column of the whole selection. A person tries a few ranges before a request. */
const previewRate = { perMinute: 20, burst: 20 }

/**
 * Each verification counts every store twice, over everything that the organisation has. A person checks from
 * time to time; a program may follow ten requests.
 */
const verifyRate = { perMinute: 20, burst: 20 }

/** Fetching the certificates of a year of deletions needs about one request a second. */
const certificateRate = { perMinute: 60, burst: 60 }

const IdempotencyKey = z.object({
  'idempotency-key': z
    .string()
    .regex(/^[\x21-\x7e]{1,200}$/, { error: 'Use 1 to 200 visible ASCII characters' })
    .optional()
    .describe(
      '1 to 200 visible ASCII characters: the same key with the same selection returns the same request.',
    ),
})

interface Decision {
  readonly summary: string
  readonly example: DeletionRequest
  readonly refusals?: Operation['refusals']
}

function decision(verb: string, { example, refusals = [], summary }: Decision) {
  return operation({
    id: `postUsageStorageDeletionsByRequestId${verb.charAt(0).toUpperCase()}${verb.slice(1)}`,
    method: 'POST',
    path: `/usage/storage/deletions/:request_id/${verb}`,
    access: administrators,
    tag: 'Deletion',
    summary,
    params: DeletionParams,
    body: NoBody,
    results: { 200: { body: DeletionRequest, headers: ['retry-after'], example } },
    refusals: ['not_found', 'deletion_state', ...refusals],
    rate: decisionRate,
  })
}

export const deletionOperations = {
  create: operation({
    id: 'postUsageStorageDeletions',
    method: 'POST',
    path: '/usage/storage/deletions',
    access: administrators,
    tag: 'Deletion',
    summary: 'Erase telemetry of your organisation: a time range, or all of it',
    headers: IdempotencyKey,
    body: CreateDeletion,
    bodyExample: createDeletionExample,
    results: {
      200: {
        meaning:
          'The identical request that is already active, or the one that this Idempotency-Key created.',
        body: DeletionRequest,
        example: runningDeletionExample,
        headers: ['location', 'retry-after'],
      },
      202: {
        body: DeletionRequest,
        headers: ['location', 'retry-after'],
        example: runningDeletionExample,
      },
    },
    refusals: ['deletion_conflict', 'preview_stale', 'query_too_expensive', 'erasing'],
    refusalBodies: { preview_stale: StalePreview },
    rate: createRate,
  }),
  list: operation({
    id: 'getUsageStorageDeletions',
    method: 'GET',
    path: '/usage/storage/deletions',
    access: administrators,
    tag: 'Deletion',
    summary: 'Deletion requests of your organisation, newest first',
    query: DeletionListQuery,
    results: {
      200: {
        body: pageOf(DeletionRequest),
        example: { items: [completedDeletionExample], next_cursor: null },
      },
    },
  }),
  get: operation({
    id: 'getUsageStorageDeletionsByRequestId',
    method: 'GET',
    path: '/usage/storage/deletions/:request_id',
    access: administrators,
    tag: 'Deletion',
    summary: 'One deletion request: its status, clocks, counts and steps',
    params: DeletionParams,
    results: {
      200: { body: DeletionRequest, headers: ['retry-after'], example: completedDeletionExample },
    },
    refusals: ['not_found'],
  }),
  preview: operation({
    id: 'postUsageStorageDeletionsPreview',
    method: 'POST',
    path: '/usage/storage/deletions/preview',
    access: administrators,
    tag: 'Deletion',
    summary: 'Count what a deletion would erase, without erasing anything',
    body: PreviewDeletion,
    bodyExample: previewDeletionExample,
    results: { 200: { body: DeletionPreview, example: deletionPreviewExample } },
    refusals: ['query_too_expensive', 'erasing'],
    rate: previewRate,
  }),
  cancel: decision('cancel', {
    summary: 'Cancel a deletion that has not begun; its telemetry can be read again',
    example: cancelledDeletionExample,
  }),
  approve: decision('approve', {
    summary: 'Approve a deletion that another person requested',
    example: approvedDeletionExample,
    refusals: ['own_request'],
  }),
  retry: decision('retry', {
    summary: 'Retry a failed or incomplete deletion now',
    example: retriedDeletionExample,
  }),
  reject: operation({
    id: 'postUsageStorageDeletionsByRequestIdReject',
    method: 'POST',
    path: '/usage/storage/deletions/:request_id/reject',
    access: administrators,
    tag: 'Deletion',
    summary: 'Reject a deletion that waits for approval',
    params: DeletionParams,
    body: RejectDeletion,
    bodyExample: rejectDeletionExample,
    results: {
      200: { body: DeletionRequest, headers: ['retry-after'], example: rejectedDeletionExample },
    },
    refusals: ['not_found', 'deletion_state'],
    rate: decisionRate,
  }),
  verify: operation({
    id: 'postUsageStorageDeletionsByRequestIdVerify',
    method: 'POST',
    path: '/usage/storage/deletions/:request_id/verify',
    access: administrators,
    tag: 'Deletion',
    summary: 'Count again everything that a deletion selects',
    params: DeletionParams,
    body: NoBody,
    results: { 200: { body: ReadBackResult, example: readBackExample } },
    refusals: ['not_found', 'deletion_state', 'query_too_expensive'],
    rate: verifyRate,
  }),
  certificate: operation({
    id: 'getUsageStorageDeletionsByRequestIdCertificate',
    method: 'GET',
    path: '/usage/storage/deletions/:request_id/certificate',
    access: administrators,
    tag: 'Evidence',
    summary: 'The signed certificate of a completed deletion, as JSON or as a page to print',
    params: DeletionParams,
    query: CertificateQuery,
    results: {
      200: {
        body: CertificateAnswer,
        example: certificateExample,
        page: 'The same as a page that loads no files and runs no scripts.',
        headers: ['vary'],
      },
    },
    // The first request issues the certificate, which writes to the control plane.
    refusals: ['not_found', 'not_verified', 'storage_full', 'outcome_unknown'],
    rate: certificateRate,
  }),
} as const
