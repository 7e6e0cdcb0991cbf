// Examples of erasing: a range of logs and traces is previewed, erased, read back and certified.

import type { z } from 'zod'
import { type CertificateAnswer, certificateVersion, jwksUri } from '../deletion/certificate.ts'
import type {
  CreateDeletion,
  DeletionPreview,
  DeletionRequest,
  PreviewDeletion,
  ReadBackResult,
  RejectDeletion,
} from '../deletion/requests.ts'
import { ada, ben, previewId, requestId, tenantId } from './acme.ts'
import { completedEntryExample } from './evidence.ts'

export const createDeletionExample: z.input<typeof CreateDeletion> = {
  scope: 'range',
  confirm: tenantId,
  range_start: '2026-11-21T08:00:00Z',
  range_end: '2026-11-21T09:30:00Z',
  signals: ['logs', 'traces'],
  reason: 'leaked_secret',
  note: 'Ticket 118',
}

export const previewDeletionExample: z.input<typeof PreviewDeletion> = {
  scope: 'range',
  range_start: '2026-11-21T08:00:00Z',
  range_end: '2026-11-21T09:30:00Z',
  signals: ['logs', 'traces'],
}

export const rejectDeletionExample: z.input<typeof RejectDeletion> = {
  reason: 'The range is longer than the leak',
}

const untouched = {
  rows_erased: 0,
  bytes_erased: 0,
  partitions_dropped: 0,
  partitions_rewritten: 0,
  steps_done: 0,
  steps_total: 0,
  stores: {},
  left_over: null,
  held_by: [],
  erased_by: null,
  attempts: 0,
  crashes: 0,
  blocked_reason: null,
  next_attempt_at: null,
}

/** As it is returned at once: hidden, and not yet removed. */
export const runningDeletionExample: DeletionRequest = {
  request_id: requestId,
  id: requestId,
  scope: 'range',
  status: 'running',
  range_start: '2026-11-21T08:00:00Z',
  range_end: '2026-11-21T09:30:00Z',
  detail: untouched,
  created_at: '2026-11-21T09:30:00.412Z',
  finished_at: null,
  requested_by: ada,
  signals: ['logs', 'traces'],
  reason: 'leaked_secret',
  note: 'Ticket 118',
  hidden_at: '2026-11-21T09:30:00.412Z',
  removed_at: null,
  verified_at: null,
  backups_clear_by: '2026-12-21T02:00:00.000Z',
  starts_at: null,
  approve_by: null,
  approved_by: null,
  refuse_late: false,
  late_rows: 0,
}

const remaining = { otel_logs: 0, otel_traces: 0, anomalies: 0, unfinished_copies: 0 }

export const completedDeletionExample: DeletionRequest = {
  ...runningDeletionExample,
  status: 'completed',
  detail: {
    ...untouched,
    rows_erased: 182_254,
    bytes_erased: 5_310_882,
    partitions_rewritten: 2,
    steps_done: 3,
    steps_total: 3,
    stores: { otel_logs: 121_640, otel_traces: 60_613, anomalies: 1 },
    left_over: remaining,
    attempts: 1,
    steps: [
      {
        store: 'otel_logs',
        partition: '7-20261116',
        action: 'rewritten',
        rows: 121_640,
        bytes: 3_480_117,
        done_at: '2026-11-21T09:30:00.961Z',
      },
      {
        store: 'otel_traces',
        partition: '7-20261116',
        action: 'rewritten',
        rows: 60_613,
        bytes: 1_830_765,
        done_at: '2026-11-21T09:30:01.388Z',
      },
      {
        store: 'anomalies',
        partition: null,
        action: 'removed',
        rows: 1,
        bytes: 0,
        done_at: '2026-11-21T09:30:01.402Z',
      },
    ],
  },
  finished_at: '2026-11-21T09:30:02.530Z',
  removed_at: '2026-11-21T09:30:02.411Z',
  verified_at: '2026-11-21T09:30:02.517Z',
}

/** A delayed one that its requester has cancelled. */
export const cancelledDeletionExample: DeletionRequest = {
  ...runningDeletionExample,
  status: 'cancelled',
  detail: { ...untouched, steps: [] },
  starts_at: '2026-11-21T10:30:00.412Z',
  finished_at: '2026-11-21T09:41:17.020Z',
}

export const approvedDeletionExample: DeletionRequest = {
  ...runningDeletionExample,
  status: 'scheduled',
  detail: { ...untouched, steps: [] },
  approve_by: '2026-12-21T09:30:00.412Z',
  approved_by: ben,
  hidden_at: '2026-11-21T09:44:52.806Z',
}

export const rejectedDeletionExample: DeletionRequest = {
  ...runningDeletionExample,
  status: 'rejected',
  detail: { ...untouched, steps: [] },
  approve_by: '2026-12-21T09:30:00.412Z',
  hidden_at: null,
  finished_at: '2026-11-21T09:44:52.806Z',
}

export const retriedDeletionExample: DeletionRequest = {
  ...runningDeletionExample,
  status: 'scheduled',
  detail: { ...untouched, attempts: 4, steps: [] },
}

export const readBackExample: z.output<typeof ReadBackResult> = {
  request_id: requestId,
  checked_at: '2026-11-24T08:00:00.131Z',
  is_clean: true,
  remaining,
  deletion: completedDeletionExample,
}

export const deletionPreviewExample: DeletionPreview = {
  id: previewId,
  preview_id: previewId,
  created_at: '2026-11-21T09:27:40.000Z',
  expires_at: '2026-11-21T09:42:40.000Z',
  scope: 'range',
  range_start: '2026-11-21T08:00:00Z',
  range_end: '2026-11-21T09:30:00Z',
  rows: 182_253,
  bytes: 5_310_882,
  signals: [
    {
      signal: 'logs',
      rows: 121_640,
      bytes: 3_480_117,
      first: '2026-11-21T08:00:00.000413Z',
      last: '2026-11-21T09:27:39.118Z',
      services: ['checkout', 'storefront'],
      services_total: 2,
    },
    {
      signal: 'traces',
      rows: 60_613,
      bytes: 1_830_765,
      first: '2026-11-21T08:00:00.107Z',
      last: '2026-11-21T09:27:38.204Z',
      services: ['checkout', 'storefront'],
      services_total: 2,
    },
  ],
  derived: { anomalies: 1, anomalies_learned_from: 0 },
  held: [],
  backups: [
    {
      backup_id: 'bak_01m7xx9x801hygcpwpq5e6eycn',
      taken_at: '2026-11-21T02:00:00.000Z',
      expires_at: '2026-12-21T02:00:00.000Z',
    },
  ],
  backups_clear_by: '2026-12-21T02:00:00.000Z',
  work: { partitions_dropped: 0, partitions_rewritten: 2, bytes_rewritten: 88_410_226 },
  needs_approval: false,
  warnings: [],
  tolerance_rows: 1000,
}

const instance = '5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9'

export const certificateExample: z.output<typeof CertificateAnswer> = {
  request_id: requestId,
  issued_at: '2026-11-21T09:35:11.900Z',
  certificate: {
    iss: `lethe:instance:${instance}`,
    iat: 1_795_253_711,
    jti: `${requestId}/3-${completedEntryExample.hash.slice(0, 8)}-mibk3x2o`,
    certificate_version: certificateVersion,
    issued_at: '2026-11-21T09:35:11.900Z',
    supersedes: null,
    issuer: {
      instance_sha256: instance,
      service: 'Lethe',
      service_version: '0.1.0',
      schema_version: '0009-actors',
      engine: 'ClickHouse (chDB, embedded)',
      engine_version: '26.7.2.1',
    },
    organisation: {
      tenant_id: tenantId,
      name_sha256: '6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b',
    },
    request: {
      request_id: requestId,
      scope: 'range',
      signals: ['logs', 'traces'],
      range_start: '2026-11-21T08:00:00Z',
      range_end: '2026-11-21T09:30:00Z',
      reason: 'leaked_secret',
      requested_by: ada,
      approved_by: null,
    },
    times: {
      requested_at: '2026-11-21T09:30:00.412Z',
      approved_at: null,
      hidden_at: '2026-11-21T09:30:00.412Z',
      removed_at: '2026-11-21T09:30:02.411Z',
      verified_at: '2026-11-21T09:30:02.517Z',
      backups_clear_by: '2026-12-21T02:00:00.000Z',
    },
    erasure: {
      category: 'Clear (logical removal and verification)',
      executed_by: 'system:deletion',
      erased_with: null,
      rows: 182_254,
      bytes: 5_310_882,
      stores: [
        {
          store: 'otel_logs',
          method: 'partition_rewritten',
          partitions: 1,
          rows: 121_640,
          bytes: 3_480_117,
        },
        {
          store: 'otel_traces',
          method: 'partition_rewritten',
          partitions: 1,
          rows: 60_613,
          bytes: 1_830_765,
        },
        { store: 'anomalies', method: 'rows_removed', partitions: 0, rows: 1, bytes: 0 },
      ],
    },
    verification: {
      verified_by: 'separate read-back code, which shares no statement with the eraser',
      method: 'full re-count of every store, by organisation and time',
      rows_remaining: 0,
      stores: { otel_logs: 0, otel_traces: 0, anomalies: 0, unfinished_copies: 0 },
    },
    backups: [
      {
        backup_id: 'bak_01m7xx9x801hygcpwpq5e6eycn',
        taken_at: '2026-11-21T02:00:00.000Z',
        expires_at: '2026-12-21T02:00:00.000Z',
      },
    ],
    exclusions: ['Blocks that the file system has freed but not yet overwritten.'],
    late_data: {
      rule: 'accepted_as_new',
      meaning:
        'what arrives for the erased time after the verification is accepted as something new, which this does not cover.',
    },
    ledger: { seq: completedEntryExample.seq, hash: completedEntryExample.hash },
  },
  jws: 'eyJhbGciOiJFZERTQSIsInR5cCI6ImRlbGV0aW9uLWNlcnRpZmljYXRlK2p3cyJ9.eyJiYWNrdXBzIjpbXX0.ouJkw0GsL1br_71u2jYyXc',
  jwks_uri: jwksUri,
}
