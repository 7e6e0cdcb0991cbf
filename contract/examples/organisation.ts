// Examples of an organisation: the caller, its access tokens, its removal, and what it sends.

import type { z } from 'zod'
import type { Session } from '../organisation/session.ts'
import type {
  AccessToken,
  CreateAccessToken,
  CreatedAccessToken,
  Me,
  Organisation,
  OrganisationRemoved,
  RemoveOrganisation,
  RevokedAccessToken,
} from '../organisation/tenancy.ts'
import type { IngestUsage } from '../organisation/usage.ts'
import { ada, adaTokenId, collectorTokenId, tenantId } from './acme.ts'

export const meExample: Me = {
  tenant_id: tenantId,
  organisation_name: 'Acme Shop',
  role: 'owner',
  token_id: adaTokenId,
  requester: ada,
}

export const organisationExample: z.output<typeof Organisation> = {
  tenant_id: tenantId,
  name: meExample.organisation_name,
  created_at: '2026-07-15T08:00:12.090Z',
}

export const sessionExample: Session = {
  id: 'ses_01m7yq0a5e2gk9w3v8c1n4r7tx',
  ...meExample,
  created_at: '2026-11-21T09:27:02.114Z',
  ends_at: '2026-11-28T09:27:02.114Z',
}

export const createTokenExample: z.input<typeof CreateAccessToken> = {
  name: 'collector-eu',
  role: 'ingest',
  expires_in_days: 365,
}

export const tokenExample: AccessToken = {
  id: collectorTokenId,
  name: 'collector-eu',
  role: 'ingest',
  prefix: 'lethe_ingest_cVDa',
  created_at: '2026-11-02T14:10:00.000Z',
  created_by: ada,
  last_used_at: '2026-11-21T09:26:40.112Z',
  expires_at: '2027-11-02T14:10:00.000Z',
  revoked_at: null,
  made_with: adaTokenId,
  line_expires_at: '2027-11-02T14:10:00.000Z',
  live_descendants: 0,
}

export const createdTokenExample: z.output<typeof CreatedAccessToken> = {
  ...tokenExample,
  token: 'lethe_ingest_cVDa…',
}

export const revokedTokenExample: RevokedAccessToken = {
  ...tokenExample,
  revoked_at: '2026-11-21T09:28:30.250Z',
  revoked_descendants: 0,
}

export const removeOrganisationExample: z.input<typeof RemoveOrganisation> = { confirm: tenantId }

export const organisationRemovedExample: OrganisationRemoved = {
  tenant_id: tenantId,
  removed_at: '2027-06-30T17:00:00.041Z',
  checkpoints: {
    ledger: 'eyJhbGciOiJFZERTQSIsInR5cCI6ImxldGhlLWNoZWNrcG9pbnQrandzIn0.eyJjaGFpbiI6ImxlZGdlciJ9.fhbfJzC',
    audit: 'eyJhbGciOiJFZERTQSIsInR5cCI6ImxldGhlLWNoZWNrcG9pbnQrandzIn0.eyJjaGFpbiI6ImF1ZGl0In0.dmCRvpg',
  },
}

const today = {
  day: '2026-11-21',
  bytes: 92_411_873,
  rows_accepted: 216_463,
  rows_rejected: 12,
  requests_refused: 0,
}

export const ingestUsageExample: z.output<typeof IngestUsage> = {
  tenant_id: tenantId,
  limits: { rows_per_second: 20_000, burst_rows: 60_000, bytes_per_day: null },
  today,
  resets_at: '2026-11-22T00:00:00.000Z',
  days: [
    today,
    {
      day: '2026-11-20',
      bytes: 231_020_411,
      rows_accepted: 541_180,
      rows_rejected: 0,
      requests_refused: 3,
    },
  ],
}
