// A chain as a file that can be checked alone: one line of RFC 8785 text per entry, its hash among its
// fields, oldest first, and last a signed checkpoint with the number of entries and the hash of the last one,
// so that a missing end is found as well. Chains only grow, so the export is of one moment although it is
// read in pages.

import canonicalize from 'canonicalize'
import type { Control } from '../control/database.ts'
import { type Clock, instantText } from '../core/clock.ts'
import { Pace } from '../core/turns/pace.ts'
import { workFor } from '../core/work-owner.ts'
import { chainStart, type SealedEntry } from './chain.ts'
import { type ChainName, chainTables, readChainFrom, readHead } from './log.ts'
import type { SigningKeys } from './signing.ts'

/** The type of a checkpoint in its signature; see {@link Checkpoint}. */
export const checkpointType = 'lethe-checkpoint+jws'

export interface Checkpoint {
  readonly tenant_id: string
  readonly chain: ChainName
  /** Number of entries of the chain. */
  readonly entries: number
  /** Hash of the last of them; 64 zeros where there is none. */
  readonly head: string
  readonly at: string
}

export interface ExportDeps {
  readonly control: Control
  readonly clock: Clock
  readonly keys: SigningKeys
}

/** Entries read at a time: some two milliseconds, and some ten to write their lines. */
const pageLength = 200

/**
 * Yields lines with their ends. Entries are passed on as they are stored, valid or not: the reader checks
 * them. Throws where an entry is not JSON; the lines so far then have no checkpoint.
 *
 * @param pace waits for turns between slices; absent: in the next round of the loop
 */
export async function* exportChain(
  deps: ExportDeps,
  chain: ChainName,
  tenantId: string,
  pace = new Pace(),
): AsyncGenerator<string, void, undefined> {
  const { control } = deps
  const { entries } = await readHead(control, chainTables[chain], tenantId)
  let last: SealedEntry | null = null
  for (let afterSeq = 0; afterSeq < entries; afterSeq += pageLength) {
    // The database answers on the event loop, and a fast reader's socket always has room, so nothing else
    // would make the loop continue with other work before the end of a long chain.
    if (afterSeq > 0) await pace.turn()
    const limit = Math.min(pageLength, entries - afterSeq)
    // A stream may be read in the course of other work.
    const page = () => readChainFrom(control, chainTables[chain], tenantId, { afterSeq, limit })
    for (const entry of await workFor(tenantId, page)) {
      if (pace.isOver()) await pace.turn()
      yield `${lineOf(entry)}\n`
      last = entry
    }
  }
  const checkpoint = await signCheckpoint(deps, chain, tenantId, { entries, head: last?.hash ?? chainStart })
  yield `${JSON.stringify({ checkpoint })}\n`
}

/** Returns a compact JWS over a {@link Checkpoint} of this moment. */
export async function signCheckpoint(
  { clock, keys }: ExportDeps,
  chain: ChainName,
  tenantId: string,
  end: { entries: number; head: string },
): Promise<string> {
  const { entries, head } = end
  const checkpoint: Checkpoint = { tenant_id: tenantId, chain, entries, head, at: instantText(clock.nowMs()) }
  return keys.sign(checkpoint, checkpointType)
}

function lineOf({ text, hash }: SealedEntry): string {
  const line = canonicalize({ ...JSON.parse(text), hash })
  if (line === undefined) throw new TypeError('An entry of a chain is not a JSON object.')
  return line
}
