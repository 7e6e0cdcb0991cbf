// The list of attacks in the order of the run: those that need no token first.

import type { Attack } from '../attack.ts'
import { attacksByBodies } from './bodies.ts'
import { controls } from './controls.ts'
import { attacksByDetection } from './detection.ts'
import { attacksByErasures } from './erasures.ts'
import { attacksOnGrpc } from './grpc.ts'
import { attacksByIngest } from './ingest.ts'
import { attacksByReads } from './reads.ts'
import { attacksOnRecords } from './records.ts'
import { attackByReleases } from './releases.ts'
import { attacksOfSeveral } from './several.ts'
import { attacksWithoutToken } from './without-token.ts'

export const everyAttack: readonly Attack[] = [
  ...attacksWithoutToken,
  ...attacksByBodies,
  ...attacksOnGrpc,
  ...attacksByIngest,
  ...attacksByReads,
  ...attacksByDetection,
  attackByReleases,
  ...attacksByErasures,
  ...attacksOnRecords,
  ...attacksOfSeveral,
]

/** Throws where there is no attack of this name. */
export function attackNamed(name: string): Attack {
  const found = [...controls, ...everyAttack].find((attack) => attack.name === name)
  if (found === undefined) throw new Error(`There is no attack ${name}.`)
  return found
}
