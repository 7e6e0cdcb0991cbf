// Examples of rules for erasures: the policy of a second person, a legal hold, and retention.

import type { z } from 'zod'
import type {
  DeletionPolicy,
  LegalHold,
  PatchRetention,
  PlaceHold,
  RejectRetentionChange,
  Retention,
  SetDeletionPolicy,
  SetRetention,
} from '../deletion/governance.ts'
import { ada, changeId, holdId } from './acme.ts'

export const setPolicyExample: z.input<typeof SetDeletionPolicy> = { approval: 'full_erasures' }

export const policyExample: DeletionPolicy = {
  approval: 'full_erasures',
  pending: null,
  second_person: {
    told_by: 'tokens',
    limit:
      'Two tokens count as two people unless one descends from the other or both descend from the same token. Tokens that the operator made descend from none, so two of them count as two people even where one person has both: the operator must give each person one.',
  },
}

export const placeHoldExample: z.input<typeof PlaceHold> = {
  case_ref: 'case 2026-118',
  range_start: '2026-10-01T00:00:00Z',
  range_end: '2026-11-01T00:00:00Z',
  signals: ['logs'],
  review_at: '2027-05-01T00:00:00Z',
}

export const holdExample: LegalHold = {
  id: holdId,
  hold_id: holdId,
  case_ref: 'case 2026-118',
  signals: ['logs'],
  range_start: '2026-10-01T00:00:00Z',
  range_end: '2026-11-01T00:00:00Z',
  review_at: '2027-05-01T00:00:00.000Z',
  placed_by: ada,
  placed_at: '2026-11-19T10:15:00.000Z',
  released_by: null,
  released_at: null,
}

export const releasedHoldExample: LegalHold = {
  ...holdExample,
  released_by: ada,
  released_at: '2027-04-28T13:02:44.310Z',
}

export const setRetentionExample: z.input<typeof SetRetention> = {
  metrics_days: 400,
  logs_days: 30,
  traces_days: 14,
}

export const patchRetentionExample: z.input<typeof PatchRetention> = { logs_days: 7 }

export const retentionExample: Retention = { metrics_days: 400, logs_days: 30, traces_days: 14 }

/** Shorter retention of logs waits for a second person. */
export const pendingRetentionExample: Retention = {
  ...retentionExample,
  pending: [
    {
      id: changeId,
      logs_days: 7,
      requested_by: ada,
      requested_at: '2026-11-20T16:40:00.000Z',
      approve_by: '2026-12-20T16:40:00.000Z',
    },
  ],
}

export const shorterRetentionExample: Retention = { ...retentionExample, logs_days: 7 }

export const rejectRetentionExample: z.input<typeof RejectRetentionChange> = {
  reason: 'The audit of this year needs the logs of 30 days',
}
