// Legal holds that the operator places, for an order that the organisation itself must not release. They
// apply from the next step of an erasure on; the step that a running service is carrying out is completed.

import { type LegalHold, PlaceHold } from '../../contract/deletion/governance.ts'
import { type Config, ConfigError } from '../config.ts'
import { systemClock } from '../core/clock.ts'
import { LegalHolds } from '../deletion/governance/holds.ts'
import { forgetReleasedVersions } from '../detection/anomalies/held-anomalies.ts'
import { findRelated } from '../tenancy/lineage.ts'
import { TenancyStore } from '../tenancy/store.ts'
import { operator, requireOrganisation, withControl } from './open-control.ts'
import { type JsonOption, print, printJson } from './print.ts'

/** Maximum number of holds listed; no organisation has more. */
const listMax = 500

interface HoldOptions extends JsonOption {
  readonly org: string
  readonly case: string
  readonly from?: string
  readonly until?: string
  readonly signals?: string
  readonly review?: string
}

export async function placeHold(config: Config, options: HoldOptions): Promise<void> {
  const body = PlaceHold.safeParse({
    case_ref: options.case,
    ...(options.from !== undefined && { range_start: options.from }),
    ...(options.until !== undefined && { range_end: options.until }),
    ...(options.signals !== undefined && { signals: options.signals.split(',') }),
    ...(options.review !== undefined && { review_at: options.review }),
  })
  if (!body.success) {
    const [issue] = body.error.issues
    throw new ConfigError(`The hold can't be placed: ${issue?.path.join('.')}: ${issue?.message}`)
  }
  const { range_start: startNs, range_end: endNs } = body.data
  if (startNs !== undefined && endNs !== undefined && startNs >= endNs) {
    throw new ConfigError('The hold can’t be placed: --until must be after --from.')
  }
  await withHolds(config, options.org, async (holds) => {
    const hold = await holds.place(options.org, body.data, operator)
    if (options.json) return printJson(hold)
    print(describe(hold))
    print('An erasure in progress keeps what this hold covers from its next step on.')
  })
}

export async function listHolds(config: Config, options: JsonOption & { org: string }): Promise<void> {
  await withHolds(config, options.org, async (holds) => {
    const page = { limit: listMax, beforeId: null, isActive: null }
    const items = await holds.list(options.org, page)
    if (options.json) return printJson({ items })
    for (const hold of items) print(describe(hold))
  })
}

export async function releaseHold(
  config: Config,
  id: string,
  options: JsonOption & { org: string },
): Promise<void> {
  await withHolds(config, options.org, async (holds) => {
    const hold = await holds.release(options.org, id, operator)
    if (options.json) printJson(hold)
    else print(describe(hold))
  })
}

async function withHolds(
  config: Config,
  tenantId: string,
  work: (holds: LegalHolds) => Promise<void>,
): Promise<void> {
  await withControl(config, async (control) => {
    await requireOrganisation(new TenancyStore(control, systemClock), tenantId)
    await work(new LegalHolds(control, systemClock, findRelated, forgetReleasedVersions))
  })
}

function describe(hold: LegalHold): string {
  const range = `${hold.range_start ?? 'the beginning'} to ${hold.range_end ?? 'the end'}`
  const state = hold.released_at === null ? 'active' : `released ${hold.released_at}`
  return `${hold.hold_id}  ${state}  ${hold.signals.join(',')}  ${range}  by ${hold.placed_by}  ${hold.case_ref}`
}
