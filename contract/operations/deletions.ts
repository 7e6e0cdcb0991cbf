// Erasing: asking for a deletion, reading where it stands, deciding about it, and what proves
// it. For owners and admins.

import { z } from 'zod'
import { CertificateAnswer, CertificateQuery } from '../certificate.ts'
import { NoBody, pageOf } from '../common.ts'
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
} from '../deletion.ts'
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
import { administrators } from '../tenancy.ts'

/** Each reads a column of all that is selected. A person tries a few ranges before asking for one. */
const previewRate = { perMinute: 20, burst: 20 }

/**
 * Each counts every store twice, over all that the organisation has. A person looks now and then;
 * a program may follow ten.
 */
const verifyRate = { perMinute: 20, burst: 20 }

/** Whoever fetches the certificates of a year of deletions does so at one a second. */
const certificateRate = { perMinute: 60, burst: 60 }

const IdempotencyKey = z.object({
  'idempotency-key': z
    .string()
    .regex(/^[\x21-\x7e]{1,200}$/, { error: 'Use 1 to 200 visible ASCII characters' })
    .optional()
    .describe('1 to 200 visible ASCII characters: the same key with the same selection is the same request.'),
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
  })
}

export const deletionOperations = {
  create: operation({
    id: 'postUsageStorageDeletions',
    method: 'POST',
    path: '/usage/storage/deletions',
    access: administrators,
    tag: 'Deletion',
    summary: 'Erase your organisation’s own telemetry: a time range, or all of it',
    headers: IdempotencyKey,
    body: CreateDeletion,
    bodyExample: createDeletionExample,
    results: {
      200: {
        meaning: 'The identical request that is already active, or the one this Idempotency-Key made.',
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
    refusals: ['deletion_conflict', 'preview_stale', 'query_too_expensive'],
    refusalBodies: { preview_stale: StalePreview },
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
    refusals: ['query_too_expensive'],
    rate: previewRate,
  }),
  cancel: decision('cancel', {
    summary: 'Take back a deletion that has not begun; its telemetry can be read again',
    example: cancelledDeletionExample,
  }),
  approve: decision('approve', {
    summary: 'Approve a deletion that somebody else asked for',
    example: approvedDeletionExample,
    refusals: ['own_request'],
  }),
  retry: decision('retry', {
    summary: 'Try a failed or incomplete deletion again, now',
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
  }),
  verify: operation({
    id: 'postUsageStorageDeletionsByRequestIdVerify',
    method: 'POST',
    path: '/usage/storage/deletions/:request_id/verify',
    access: administrators,
    tag: 'Deletion',
    summary: 'Count again, now, everything a deletion selects',
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
        page: 'The same as one page, which loads and runs nothing.',
        headers: ['vary'],
      },
    },
    // The first one to ask has it issued, which is written down.
    refusals: ['not_found', 'not_verified', 'storage_full'],
    rate: certificateRate,
  }),
} as const
