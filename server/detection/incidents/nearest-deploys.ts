// Which deploys around an incident are looked at. A service that writes another version with each request
// has thousands of deploys in an hour: they explain nothing, and every reader would compare all of them.

import type { Ns } from '../../../contract/values/instant.ts'
import type { KnownDeploy } from '../../deploys/deploys.ts'

/** More than a service has in some hours where people or a pipeline deploy it, in all its environments. */
const ofServiceMax = 50
/** As many as take up to some ten megabytes with the longest names and versions. */
const ofAllMax = 2000

/**
 * The deploys that are nearest to an instant: at most {@link ofServiceMax} of each service, and at most
 * {@link ofAllMax} of all, in the order of the list. Of equally near ones those that come first.
 */
export function nearestDeploys(deploys: readonly KnownDeploy[], atNs: Ns): readonly KnownDeploy[] {
  const near = deploys.map((deploy) => ({ deploy, apart: Math.abs(Number(deploy.atNs - atNs)) }))
  near.sort((a, b) => a.apart - b.apart)
  const counts = new Map<string, number>()
  const kept = new Set<KnownDeploy>()
  for (const { deploy } of near) {
    const count = counts.get(deploy.service) ?? 0
    if (count === ofServiceMax) continue
    counts.set(deploy.service, count + 1)
    kept.add(deploy)
    if (kept.size === ofAllMax) break
  }
  return deploys.filter((deploy) => kept.has(deploy))
}
