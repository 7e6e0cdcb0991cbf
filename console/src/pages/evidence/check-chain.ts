// Checks an exported chain in the browser, without trusting the service that sent it: every line is exactly
// the canonical text of its entry, every entry has the hash of the one before, and the last line is a
// checkpoint, signed with a published key, over the number of entries and the last hash. This proves that
// nothing was changed, removed, added or moved. It has no access to the page, so it runs in a worker.

import canonicalize from 'canonicalize'
import { compactVerify, importJWK, type JWK } from 'jose'

export type ChainCheck =
  | {
      readonly kind: 'valid'
      readonly entries: number
      readonly head: string
      readonly keyId: string
      /** When the checkpoint was signed. */
      readonly at: string
    }
  /** `line` is the first one that is wrong, from 1. */
  | { readonly kind: 'broken'; readonly line: number; readonly problem: string }

export interface ChainExpected {
  readonly chain: 'ledger' | 'audit'
  readonly tenantId: string
  readonly keys: readonly JWK[]
}

/** The hash before the first entry. */
const chainStart = '0'.repeat(64)

/** The type of a checkpoint in its signature. */
const checkpointType = 'lethe-checkpoint+jws'

/** How many entries are checked between two reports of progress. */
const reportedEntries = 250

/** The first problem of an export. */
class Broken extends Error {}

interface Walked {
  entries: number
  head: string
  checkpoint: string | null
}

/** @param lines without their ends */
export async function checkChain(
  lines: AsyncIterable<string>,
  expected: ChainExpected,
  onProgress: (entries: number) => void,
): Promise<ChainCheck> {
  const walked: Walked = { entries: 0, head: chainStart, checkpoint: null }
  let line = 0
  try {
    for await (const text of lines) {
      line += 1
      await checkLine(text, walked, expected)
      if (walked.entries % reportedEntries === 0) onProgress(walked.entries)
    }
    onProgress(walked.entries)
    if (walked.checkpoint === null) {
      line += 1
      throw new Broken('the signed checkpoint is missing; entries may be cut off before it')
    }
    return await checkEnd(walked.checkpoint, walked, expected)
  } catch (error) {
    if (error instanceof Broken) return { kind: 'broken', line, problem: error.message }
    throw error
  }
}

async function checkLine(text: string, walked: Walked, { tenantId }: ChainExpected): Promise<void> {
  if (walked.checkpoint !== null) throw new Broken('something follows the checkpoint')
  const fields = parse(text)
  if (typeof fields.checkpoint === 'string' && Object.keys(fields).length === 1) {
    walked.checkpoint = fields.checkpoint
    return
  }
  const { hash, ...entry } = fields
  if ((await sha256(canonicalText(entry))) !== hash) throw new Broken('the entry does not match its hash')
  if (entry.seq !== walked.entries + 1) throw new Broken(`the entry is numbered ${String(entry.seq)}`)
  if (entry.prev_hash !== walked.head) throw new Broken('the entry does not follow the one before')
  if (entry.tenant_id !== tenantId) throw new Broken('the entry belongs to another organisation')
  walked.entries += 1
  walked.head = hash
}

function parse(text: string): Record<string, unknown> {
  let fields: unknown
  try {
    fields = JSON.parse(text)
  } catch {
    throw new Broken('the line is not JSON')
  }
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) {
    throw new Broken('the line is not a JSON object')
  }
  if (canonicalText(fields as Record<string, unknown>) !== text) {
    throw new Broken('the line is not the canonical text (RFC 8785) of its entry')
  }
  return fields as Record<string, unknown>
}

function canonicalText(fields: Record<string, unknown>): string {
  try {
    return canonicalize(fields) ?? ''
  } catch {
    return ''
  }
}

async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

async function checkEnd(
  jws: string,
  { entries, head }: Walked,
  { chain, keys, tenantId }: ChainExpected,
): Promise<ChainCheck> {
  const { keyId, claims } = await readCheckpoint(jws, keys)
  if (claims.chain !== chain) throw new Broken('the checkpoint is of another chain')
  if (claims.tenant_id !== tenantId) throw new Broken('the checkpoint belongs to another organisation')
  if (claims.entries !== entries) {
    throw new Broken(`the checkpoint counts ${String(claims.entries)} entries, and ${entries} were sent`)
  }
  if (claims.head !== head) throw new Broken('the checkpoint ends at another hash than the last entry')
  return { kind: 'valid', entries, head, keyId, at: String(claims.at) }
}

async function readCheckpoint(jws: string, keys: readonly JWK[]) {
  try {
    const { payload, protectedHeader } = await compactVerify(
      jws,
      async ({ kid }) => {
        const key = keys.find((one) => one.kid === kid)
        if (key === undefined) throw new Broken('the checkpoint is signed by a key that is not published')
        return importJWK({ ...key, alg: 'EdDSA' }, 'EdDSA')
      },
      { algorithms: ['EdDSA', 'Ed25519'] },
    )
    if (protectedHeader.typ !== checkpointType)
      throw new Broken('the checkpoint is the signature of something else')
    const claims: Record<string, unknown> = JSON.parse(new TextDecoder().decode(payload))
    return { keyId: protectedHeader.kid ?? '', claims }
  } catch (error) {
    if (error instanceof Broken) throw error
    throw new Broken('the signature of the checkpoint is not valid')
  }
}
