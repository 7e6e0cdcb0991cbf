// What every organisation starts with. Apart from app.ts, because commands that create one need no other room
// of the service.

import type { ControlTransaction } from '../control/database.ts'
import { createSystemDetectors } from '../detection/detectors/system-detectors.ts'
import type { NewOrganisation } from '../tenancy/store.ts'
import { insertToken } from '../tenancy/tokens.ts'

/** Creates its detectors and its owner's token. */
export async function foundOrganisation(
  trx: ControlTransaction,
  { tenantId, actor }: NewOrganisation,
  ownerSecret: string,
  nowMs: number,
): Promise<void> {
  await createSystemDetectors(trx, tenantId, nowMs)
  const token = {
    tenantId,
    name: 'first owner',
    role: 'owner' as const,
    secret: ownerSecret,
    expiresAtMs: null,
    actor,
  }
  await insertToken(trx, token, nowMs)
}
