// Rules for erasures: the policy of a second person, legal holds, and retention.

import {
  DeletionPolicy,
  HoldListQuery,
  HoldParams,
  LegalHold,
  PatchRetention,
  PlaceHold,
  RejectRetentionChange,
  Retention,
  RetentionChangeParams,
  SetDeletionPolicy,
  SetRetention,
} from '../deletion/governance.ts'
import {
  holdExample,
  patchRetentionExample,
  pendingRetentionExample,
  placeHoldExample,
  policyExample,
  rejectRetentionExample,
  releasedHoldExample,
  retentionExample,
  setPolicyExample,
  setRetentionExample,
  shorterRetentionExample,
} from '../examples/governance.ts'
import { jsonType, mergePatchType, operation } from '../operation.ts'
import { administrators, readers } from '../role.ts'
import { NoBody, pageOf } from '../values/fields.ts'

const retentionResults = {
  200: { body: Retention, example: retentionExample },
  202: {
    meaning: 'Fewer days of a signal wait in `pending` for a second person; the rest is in force.',
    body: Retention,
    example: pendingRetentionExample,
  },
} as const

/** Each is an entry in the audit log, which nothing removes. */
const changeRate = { perMinute: 60, burst: 60 }

/** Each is a row and an entry in the audit log for ever. As many at once as may be in force. */
const holdRate = { perMinute: 60, burst: 200 }

export const policyOperations = {
  get: operation({
    id: 'getUsageStorageDeletionPolicy',
    method: 'GET',
    path: '/usage/storage/deletion-policy',
    access: administrators,
    tag: 'Deletion',
    summary: 'Which deletions need a second person',
    results: { 200: { body: DeletionPolicy, example: policyExample } },
  }),
  set: operation({
    id: 'putUsageStorageDeletionPolicy',
    method: 'PUT',
    path: '/usage/storage/deletion-policy',
    access: ['owner'],
    tag: 'Deletion',
    summary: 'Set which deletions need a second person; a looser rule takes effect a day later',
    body: SetDeletionPolicy,
    bodyExample: setPolicyExample,
    results: { 200: { body: DeletionPolicy, example: policyExample } },
    rate: changeRate,
  }),
} as const

export const holdOperations = {
  place: operation({
    id: 'postUsageStorageHolds',
    method: 'POST',
    path: '/usage/storage/holds',
    access: administrators,
    tag: 'Deletion',
    summary: 'Place a legal hold: what it covers is not erased until it is released',
    body: PlaceHold,
    bodyExample: placeHoldExample,
    results: { 201: { body: LegalHold, headers: ['location'], example: holdExample } },
    refusals: ['too_many_holds', 'erasing'],
    rate: holdRate,
  }),
  list: operation({
    id: 'getUsageStorageHolds',
    method: 'GET',
    path: '/usage/storage/holds',
    access: administrators,
    tag: 'Deletion',
    summary: 'Legal holds of your organisation, newest first',
    query: HoldListQuery,
    results: { 200: { body: pageOf(LegalHold), example: { items: [holdExample], next_cursor: null } } },
  }),
  get: operation({
    id: 'getUsageStorageHoldsByHoldId',
    method: 'GET',
    path: '/usage/storage/holds/:hold_id',
    access: administrators,
    tag: 'Deletion',
    summary: 'One legal hold',
    params: HoldParams,
    results: { 200: { body: LegalHold, example: holdExample } },
    refusals: ['not_found'],
  }),
  release: operation({
    id: 'postUsageStorageHoldsByHoldIdRelease',
    method: 'POST',
    path: '/usage/storage/holds/:hold_id/release',
    access: administrators,
    tag: 'Deletion',
    summary: 'Release a legal hold; the deletions that it deferred continue',
    params: HoldParams,
    results: { 200: { body: LegalHold, example: releasedHoldExample } },
    refusals: ['not_found'],
    rate: holdRate,
  }),
} as const

export const retentionOperations = {
  get: operation({
    id: 'getUsageStorageRetention',
    method: 'GET',
    path: '/usage/storage/retention',
    access: readers,
    tag: 'Deletion',
    summary: 'How long each signal is kept',
    results: { 200: { body: Retention, example: pendingRetentionExample } },
  }),
  set: operation({
    id: 'putUsageStorageRetention',
    method: 'PUT',
    path: '/usage/storage/retention',
    access: administrators,
    tag: 'Deletion',
    summary:
      'Set how long each of the three signals is kept; older telemetry is erased at once and then at the start of each UTC day, with ledger entries as for any deletion',
    body: SetRetention,
    bodyExample: setRetentionExample,
    results: retentionResults,
    rate: changeRate,
  }),
  patch: operation({
    id: 'patchUsageStorageRetention',
    method: 'PATCH',
    path: '/usage/storage/retention',
    access: administrators,
    tag: 'Deletion',
    summary: 'Change how long some signals are kept; the others stay as they are',
    body: PatchRetention,
    bodyTypes: [jsonType, mergePatchType],
    bodyExample: patchRetentionExample,
    results: retentionResults,
    rate: changeRate,
  }),
  approveChange: operation({
    id: 'postUsageStorageRetentionChangesByChangeIdApprove',
    method: 'POST',
    path: '/usage/storage/retention/changes/:change_id/approve',
    access: administrators,
    tag: 'Deletion',
    summary: 'Approve a shorter retention that another person requested; it is in force at once',
    params: RetentionChangeParams,
    body: NoBody,
    results: { 200: { body: Retention, example: shorterRetentionExample } },
    refusals: ['not_found', 'own_request'],
    rate: changeRate,
  }),
  rejectChange: operation({
    id: 'postUsageStorageRetentionChangesByChangeIdReject',
    method: 'POST',
    path: '/usage/storage/retention/changes/:change_id/reject',
    access: administrators,
    tag: 'Deletion',
    summary: 'Reject a shorter retention that waits for approval; the current one stays in force',
    params: RetentionChangeParams,
    body: RejectRetentionChange,
    bodyExample: rejectRetentionExample,
    results: { 200: { body: Retention, example: retentionExample } },
    refusals: ['not_found'],
    rate: changeRate,
  }),
} as const
