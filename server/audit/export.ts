// A chain as a file that stands for itself: one line of RFC 8785 text per entry, its hash among its fields,
// oldest first, and last a signed checkpoint that says how many there are and how the last one hashes, so
// that a file whose end was cut off is found out as well. Chains only grow, so the export is of one moment
// although it is read in pages.

import canonicalize from 'canonicalize'
import type { Control } from '../control/database.ts'
import { type Clock, instantText } from '../core/clock.ts'
import { chainStart, type SealedEntry } from './chain.ts'
import { type ChainName, chainTables, readChainFrom, readHead } from './log.ts'
import type { SigningKeys } from './signing.ts'

/** What a checkpoint is called in its signature; see {@link Checkpoint}. */
export const checkpointType = 'lethe-checkpoint+jws'

export interface Checkpoint {
  readonly tenant_id: string
  readonly chain: ChainName
  /** How many entries the chain had. */
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

/** Entries read at a time: some hundred kilobytes. */
const pageLength = 500

/**
 * Lines with their ends. What is stored is passed on as it is, broken or not: finding that out is the
 * reader's. Throws where an entry is no JSON at all; the lines so far then have no checkpoint.
 */
export async function* exportChain(
  deps: ExportDeps,
  chain: ChainName,
  tenantId: string,
): AsyncGenerator<string, void, undefined> {
  const { control } = deps
  const { entries } = await readHead(control, chainTables[chain], tenantId)
  let last: SealedEntry | null = null
  for (let afterSeq = 0; afterSeq < entries; afterSeq += pageLength) {
    const limit = Math.min(pageLength, entries - afterSeq)
    for (const entry of await readChainFrom(control, chainTables[chain], tenantId, { afterSeq, limit })) {
      yield `${lineOf(entry)}\n`
      last = entry
    }
  }
  const checkpoint = await signCheckpoint(deps, chain, tenantId, { entries, head: last?.hash ?? chainStart })
  yield `${JSON.stringify({ checkpoint })}\n`
}

/** A compact JWS over a {@link Checkpoint} of this moment. */
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
