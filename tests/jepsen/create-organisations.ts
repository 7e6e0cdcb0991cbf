// Creates the organisations of a run before the service starts, in this process, with the code of `lethe org
// create`: two organisations share a placement only when there are more organisations than placements, and
// dozens of commands for unused organisations would take a minute. Unused ones have no token and no
// detectors.

import { mkdirSync } from 'node:fs'
import { foundOrganisation } from '../../server/app/found-organisation.ts'
import { openAndWork } from '../../server/cli/open-control.ts'
import { readConfig } from '../../server/config.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { systemClock } from '../../server/core/clock.ts'
import { TenancyStore } from '../../server/tenancy/store.ts'
import { newTokenSecret, placementCount } from '../../server/tenancy/tenancy.ts'
import type { Organisation } from './public-calls.ts'

const actor = operatorActor('jepsen')

/** Pairs of organisations; those of a pair share a placement. */
export async function createOrganisations(
  env: Readonly<Record<string, string>>,
  pairs: number,
): Promise<Organisation[]> {
  const config = readConfig(env)
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 })
  const organisations: Organisation[] = []
  await openAndWork(config, async (control) => {
    const tenancy = new TenancyStore(control, systemClock)
    const create = async (tenantId: string): Promise<void> => {
      const secret = newTokenSecret('owner')
      const organisation = { tenantId, name: tenantId, actor }
      await tenancy.createOrganisation(organisation, (trx, nowMs) =>
        foundOrganisation(trx, organisation, secret, nowMs),
      )
      organisations.push({ tenantId, secret })
    }
    for (let pair = 0; pair < pairs; pair++) await create(`pair-${pair}-a`)
    for (let other = pairs; other < placementCount; other++) {
      const tenantId = `other-${other}`
      await tenancy.createOrganisation({ tenantId, name: tenantId, actor }, async () => {})
    }
    for (let pair = 0; pair < pairs; pair++) await create(`pair-${pair}-b`)
  })
  return organisations
}
