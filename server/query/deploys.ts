// Lists deploys of services, newest first. They are computed from the versions in the telemetry, so an erased
// version is gone with its rows. Where a range has too much to read, the deploys of a newer part of it are
// listed, and the response says which part that is.

import type { z } from 'zod'
import type { Deploy, DeployQuery } from '../../contract/telemetry/deploys.ts'
import { pageOfRows } from '../core/input/cursor.ts'
import { shortText } from '../core/shortened.ts'
import { type KnownDeploy, toDeploy } from '../deploys/deploys.ts'
import { readDeploys } from '../deploys/read-deploys.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { newerPart } from './catalogue.ts'
import { interactiveLimits, type ReadLimits } from './search.ts'
import { isCount, pageStart, positionWithin } from './time-window.ts'

/**
 * The time of the last deploy that was shown, how many of that time were shown, and the start of the listed
 * part of the range, so that all pages list the same part.
 */
const byTimeAndCount = {
  parts: 3,
  isPosition: (texts: readonly string[]): boolean => texts.every(isCount),
}

export function listDeploys(
  reader: TenantReader,
  query: z.output<typeof DeployQuery>,
  nowNs: bigint,
  limits: ReadLimits = interactiveLimits,
) {
  return newerPart<Deploy>(
    pageStart(query, nowNs, byTimeAndCount),
    async ({ position, window }) => {
      const services = query.service === undefined ? undefined : [query.service]
      const { deploys, restless } = await readDeploys(reader, { windows: [window], services }, limits)
      const [at, shown] = position ?? []
      const rest = at === undefined ? deploys : before(deploys, BigInt(at), Number(shown))
      const newest = rest.toReversed()
      const page = pageOfRows(
        newest,
        query.limit,
        (last, i) => {
          const beside = newest.slice(0, i + 1).filter(({ atNs }) => atNs === last.atNs).length
          const shownBefore = String(last.atNs) === at ? Number(shown) : 0
          const texts = [String(last.atNs), String(beside + shownBefore), String(window.startNs)]
          return positionWithin(window, texts)
        },
        toDeploy,
      )
      return { ...page, warnings: restless.map(warningOf) }
    },
    (from) => `There is too much telemetry in this range; listed are deploys from ${from} on.`,
  )
}

/** Returns deploys, oldest first, without those that were shown: all newer ones, and `shown` of that time. */
function before(deploys: readonly KnownDeploy[], atNs: bigint, shown: number): KnownDeploy[] {
  const older = deploys.filter((deploy) => deploy.atNs < atNs)
  const beside = deploys.filter((deploy) => deploy.atNs === atNs)
  return [...older, ...beside.slice(0, Math.max(0, beside.length - shown))]
}

function warningOf(service: string): string {
  return `${shortText(service, 200)} names more than 200 versions in this range, so none counts as a deploy. Ask for a shorter range, or correct its service.version.`
}
