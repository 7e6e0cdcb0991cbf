// Commands for operators and auditors on the two hash chains: export one, verify an exported file, verify the
// chains of the data folder. Exit codes are for scripts: 0 valid, 1 broken, 2 consistent, but no trusted key
// was given to verify the signature.

import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { exportChain } from '../audit/export.ts'
import { type CheckedExport, checkExport, ExportProblem } from '../audit/export-check.ts'
import { checkChain, findRewriting, listTenants } from '../audit/live-check.ts'
import { type ChainName, chainTables, readHead } from '../audit/log.ts'
import { prepareSeal } from '../audit/sealed-keys.ts'
import { SigningKeys } from '../audit/signing.ts'
import { type Config, ConfigError } from '../config.ts'
import type { Control } from '../control/database.ts'
import { systemClock } from '../core/clock.ts'
import { TenancyStore } from '../tenancy/store.ts'
import { exitCodes } from './failure.ts'
import { withControl } from './open-control.ts'
import { type JsonOption, print, printDocument, printJson } from './print.ts'
import { findTrustedKeys } from './trusted-keys.ts'

/** Writes a chain to standard output, also that of a removed organisation. */
export async function exportEvidence(
  config: Config,
  chain: ChainName,
  options: { org: string },
): Promise<void> {
  await withControl(config, async (control) => {
    await requireKnown(control, chain, options.org)
    const seal = await prepareSeal(control, config.keySource)
    const deps = { control, clock: systemClock, keys: new SigningKeys(control, systemClock, seal) }
    for await (const line of exportChain(deps, chain, options.org)) {
      if (!printDocument(line)) await once(process.stdout, 'drain')
    }
  })
}

async function requireKnown(control: Control, chain: ChainName, tenantId: string): Promise<void> {
  const { entries } = await readHead(control, chainTables[chain], tenantId)
  if (entries > 0 || (await new TenancyStore(control, systemClock).findOrganisation(tenantId)) !== null)
    return
  throw new ConfigError(
    `This data folder has no organisation ${tenantId} and no ${chain} of it; see LETHE_DATA_DIR.`,
  )
}

interface VerifyOptions extends JsonOption {
  readonly org?: string
  readonly jwks?: string
  readonly live?: boolean
}

/** Returns the exit code. */
export async function verifyEvidence(
  config: Config,
  chain: ChainName,
  file: string | undefined,
  options: VerifyOptions,
): Promise<number> {
  if (file !== undefined) return verifyFile(config, chain, file, options)
  if (options.jwks !== undefined || options.live) throw new ConfigError('--jwks and --live need a FILE.')
  return verifyLive(config, chain, options)
}

async function verifyFile(
  config: Config,
  chain: ChainName,
  file: string,
  options: VerifyOptions,
): Promise<number> {
  const jwks = await findTrustedKeys(config, options.jwks)
  try {
    const found = await checkExport(createReadStream(file), chain, jwks)
    const problem = await problemBeyond(config, chain, found, options)
    if (problem !== null) return tellBroken(file, problem, options)
    if (options.json) {
      const { at, entries, head, kid, tenantId } = found
      printJson({
        file,
        verdict: kid === null ? 'not_checked' : 'holds',
        tenant_id: tenantId,
        entries,
        head,
        at,
        kid,
      })
      return kid === null ? exitCodes.notVouchedFor : 0
    }
    const signature = found.kid === null ? 'signature NOT CHECKED' : `signed by ${found.kid}`
    print(
      `${found.tenantId} ${chain}: ${count(found.entries)}, head ${found.head} at ${found.at}, ${signature}`,
    )
    if (found.kid !== null) return 0
    print(
      'No trusted key was given: use --jwks KEYS with the public keys of the service that wrote the file.',
    )
    return exitCodes.notVouchedFor
  } catch (error) {
    if (!(error instanceof ExportProblem)) throw error
    return tellBroken(file, error.message, options)
  }
}

function tellBroken(file: string, problem: string, { json }: JsonOption): number {
  if (json) printJson({ file, verdict: 'broken', problem })
  else print(`${file}: BROKEN: ${problem}`)
  return 1
}

/** Returns what is wrong with a file that is valid in itself; null where nothing is. */
async function problemBeyond(
  config: Config,
  chain: ChainName,
  found: CheckedExport,
  options: VerifyOptions,
): Promise<string | null> {
  if (options.org !== undefined && options.org !== found.tenantId) {
    return `it is of ${found.tenantId}, not of ${options.org}`
  }
  if (!options.live) return null
  const problem = await withControl(config, (control) => findRewriting(control, chain, found))
  return problem === null ? null : `the live ${chain} does not continue it: ${problem}`
}

async function verifyLive(config: Config, chain: ChainName, options: VerifyOptions): Promise<number> {
  const { json, org } = options
  return withControl(config, async (control) => {
    if (org !== undefined) await requireKnown(control, chain, org)
    const items = []
    for (const tenantId of org === undefined ? await listTenants(control) : [org]) {
      const { entries, head, problems } = await checkChain(control, chain, tenantId)
      items.push({ tenant_id: tenantId, entries, head, problems })
      if (json) continue
      if (problems.length === 0) print(`${tenantId} ${chain}: ${count(entries)}, head ${head}`)
      for (const problem of problems) print(`${tenantId} ${chain}: BROKEN: ${problem}`)
    }
    if (json) printJson({ chain, items })
    return items.every(({ problems }) => problems.length === 0) ? 0 : 1
  })
}

function count(entries: number): string {
  return entries === 1 ? '1 entry' : `${entries} entries`
}
