// Checks an exported chain without the service that made it. A line must be exactly the canonical text of its
// entry with its hash, the entries must follow each other from the first, and the file must end with a
// checkpoint that confirms this with a trusted signature: then every byte that was changed, removed, added or
// moved is found.

import canonicalize from 'canonicalize'
import { ChainWalk, readEntry } from './chain.ts'
import { type Checkpoint, checkpointType } from './export.ts'
import { readUnverified, SignatureProblem, verifyJws } from './jws.ts'
import type { ChainName } from './log.ts'

export interface CheckedExport {
  readonly tenantId: string
  readonly entries: number
  readonly head: string
  readonly at: string
  /** The key that signed it; null where no trusted keys were given, so that only consistency is proven. */
  readonly kid: string | null
}

/** The first problem of a file, and its line. */
export class ExportProblem extends Error {
  override readonly name = 'ExportProblem'
  /** From 1. */
  readonly line: number

  constructor(line: number, problem: string) {
    super(`line ${line}: ${problem}`)
    this.line = line
  }
}

/** Larger than any entry; a longer line is not read to its end. */
const lineBytesMax = 16 * 1024 * 1024

const newline = 0x0a

/**
 * Reads a file to its end. Throws {@link ExportProblem} at the first problem. Without `jwks` the signature
 * isn't checked.
 */
export async function checkExport(
  chunks: AsyncIterable<Buffer> | Iterable<Buffer>,
  chain: ChainName,
  jwks: { readonly keys: readonly unknown[] } | null,
): Promise<CheckedExport> {
  const walk = new ChainWalk()
  const tenants = new Set<string>()
  let line = 0
  let checkpoint: string | null = null
  for await (const bytes of linesOf(chunks)) {
    line += 1
    if (checkpoint !== null) throw new ExportProblem(line, 'something follows the checkpoint')
    const fields = readLine(bytes, line)
    if (typeof fields.checkpoint === 'string' && Object.keys(fields).length === 1) {
      checkpoint = fields.checkpoint
      continue
    }
    const { hash, ...entry } = fields
    const where = `${entry.seq}`
    const problem = walk.next({ text: canonicalize(entry) ?? '', hash: String(hash) })
    if (problem !== null) {
      const expected = walk.entries + 1
      throw new ExportProblem(line, `where entry ${expected} should be (seq ${where}): ${problem}`)
    }
    tenants.add(String(entry.tenant_id))
  }
  if (checkpoint === null) {
    throw new ExportProblem(line + 1, 'the checkpoint is missing; entries may have been cut off before it')
  }
  return checkEnd(checkpoint, { chain, jwks, walk, tenants, line })
}

async function checkEnd(
  jws: string,
  found: {
    readonly chain: ChainName
    readonly jwks: { readonly keys: readonly unknown[] } | null
    readonly walk: ChainWalk
    readonly tenants: ReadonlySet<string>
    readonly line: number
  },
): Promise<CheckedExport> {
  const { chain, jwks, walk, tenants, line } = found
  const { payload, kid } = await readCheckpoint(jws, jwks, line)
  const checkpoint = payload as Partial<Checkpoint>
  const refuse = (problem: string) => {
    throw new ExportProblem(line, `the checkpoint ${problem}`)
  }
  if (checkpoint.chain !== chain) refuse(`is of the chain ${checkpoint.chain}, not of the ${chain}`)
  if (checkpoint.entries !== walk.entries)
    refuse(`counts ${checkpoint.entries} entries, the file has ${walk.entries}`)
  if (checkpoint.head !== walk.head) refuse(`ends at the hash ${checkpoint.head}, the file at ${walk.head}`)
  for (const tenantId of tenants) {
    if (tenantId !== checkpoint.tenant_id)
      refuse(`is of ${checkpoint.tenant_id}, the file has an entry of ${tenantId}`)
  }
  return {
    tenantId: String(checkpoint.tenant_id),
    entries: walk.entries,
    head: walk.head,
    at: String(checkpoint.at),
    kid: jwks === null ? null : kid,
  }
}

async function readCheckpoint(jws: string, jwks: { readonly keys: readonly unknown[] } | null, line: number) {
  try {
    return jwks === null ? readUnverified(jws, checkpointType) : await verifyJws(jws, jwks, checkpointType)
  } catch (error) {
    if (error instanceof SignatureProblem) throw new ExportProblem(line, `the checkpoint: ${error.message}`)
    throw error
  }
}

function readLine(bytes: Buffer, line: number): Record<string, unknown> {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new ExportProblem(line, 'the line is not UTF-8')
  }
  const fields = readEntry(text)
  if (fields === null) throw new ExportProblem(line, 'the line is not a JSON object')
  if (canonicalText(fields) !== text) {
    throw new ExportProblem(line, 'the line is not the canonical text (RFC 8785) of its entry')
  }
  return fields
}

function canonicalText(fields: Record<string, unknown>): string | null {
  try {
    return canonicalize(fields) ?? null
  } catch {
    return null
  }
}

/**
 * Yields lines without their ends. A last line without an end is a problem: an export always ends its lines.
 */
async function* linesOf(
  chunks: AsyncIterable<Buffer> | Iterable<Buffer>,
): AsyncGenerator<Buffer, void, undefined> {
  let line = 1
  let rest: Buffer[] = []
  let restBytes = 0
  for await (const chunk of chunks) {
    let start = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      yield Buffer.concat([...rest, chunk.subarray(start, end)])
      line += 1
      start = end + 1
      rest = []
      restBytes = 0
    }
    rest.push(chunk.subarray(start))
    restBytes += chunk.length - start
    if (restBytes > lineBytesMax) throw new ExportProblem(line, 'the line is longer than any entry')
  }
  if (restBytes > 0) throw new ExportProblem(line, 'the line has no end; something is cut off')
}
