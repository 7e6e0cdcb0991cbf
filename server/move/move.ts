// Moves the control plane of a stopped service into an empty database, of the same kind or another one. The
// source is locked against writers from the first row to the last, its chains are checked before and the
// target's after, and every table is compared row by row. The order of the marks (control/move-mark.ts) keeps
// both databases from being used: the target is marked first, then the source is marked, and only then is the
// target's mark removed. A move that was interrupted anywhere continues when it is repeated; a source that
// has changed since is copied from the beginning. Each side records that the other one may keep what is
// erased later (control/left-planes.ts).

import { checkChain, listTenants } from '../audit/live-check.ts'
import { chainTables } from '../audit/log.ts'
import { ControlPlaneError } from '../control/control-plane-error.ts'
import { controlTables, copyTable, dropTables, isEmptyOf, sameDigest } from '../control/copy.ts'
import { folderSecretIn } from '../control/data-folder.ts'
import type { Control, ControlTransaction } from '../control/database.ts'
import { dialectOf } from '../control/dialect.ts'
import { type ControlPlace, forgetLeft, recordLeft } from '../control/left-planes.ts'
import { migrate, migrationNames } from '../control/migrate.ts'
import { migrationsIn } from '../control/migration-history.ts'
import { assertUsable, type MoveMark, readMark, removeMark, setMark } from '../control/move-mark.ts'
import { transactOnce } from '../control/transaction.ts'

interface NamedControl extends ControlPlace {
  readonly control: Control
}

export interface MoveOptions {
  readonly source: NamedControl & {
    /** A second handle, which reads while a transaction of the first one is open. */
    readonly reader: Control
  }
  readonly target: NamedControl
  /** Names the installation; no secret. */
  readonly installation: string
  /** Moves chains that are broken, as they are. */
  readonly withBrokenChains: boolean
  /** Takes a line of the transcript. */
  readonly say: (line: string) => void
  /** A point at which a test may end the process. */
  readonly failpoint: (name: string) => Promise<void>
}

interface Moved {
  readonly tables: readonly { readonly table: string; readonly rows: number; readonly digest: string }[]
  readonly chains: number
  readonly entries: number
  /** Whether an earlier command had already copied and compared everything. */
  readonly wasComplete: boolean
}

/**
 * Throws ControlPlaneError, whose message is for the operator; neither side is then left usable by mistake.
 */
export async function moveControl(options: MoveOptions): Promise<Moved> {
  const { failpoint, source, target, say } = options
  say(`From ${source.name}`)
  say(`To   ${target.name}`)
  if (await wasLeft(options)) return finish(options)
  await prepareSource(options)
  await prepareTarget(options)
  // From here on the target may have rows, also where this move is never finished.
  await recordLeft(source.control, target)
  await failpoint('target marked')
  const before = await checkChains(source.reader, options)
  say(`Chains before: ${chainsText(before)}.`)
  const tables = await transactOnce(source.control, async (trx) => {
    await dialectOf(trx).lockAll(trx)
    // Another process may have moved the source since the first check.
    await assertUsable(trx)
    const copied = await copyAll(options, trx)
    await failpoint('compared')
    const after = await checkChains(target.control, options)
    say(`Chains after: ${chainsText(after)}.`)
    if (before.text !== after.text) throw new Error('The chains of both sides differ.')
    await setMark(trx, { ...markOf(options), state: 'left', other: target.name })
    return copied
  })
  await failpoint('source marked')
  await finish(options)
  return { tables, chains: before.chains, entries: before.entries, wasComplete: false }
}

/** Whether the source is marked as moved to this target, so that only the target's mark is left to remove. */
async function wasLeft({ source, target }: MoveOptions): Promise<boolean> {
  if ((await migrationsIn(source.control)).length === 0) {
    throw new ControlPlaneError(`There is no control plane in ${source.name}.`)
  }
  await migrate(source.control)
  const mark = await readMark(source.control)
  return mark?.state === 'left' && mark.other === target.name
}

/** The last step: from here on the target is used. */
async function finish({ source, target, say }: MoveOptions): Promise<Moved> {
  const names = await migrationsIn(target.control)
  if (names.length === 0) {
    throw new ControlPlaneError(
      `${source.name} is marked as moved to ${target.name}, which has no control plane. Is it the right database?`,
    )
  }
  await forgetLeft(target.control, target)
  await recordLeft(target.control, source)
  await removeMark(target.control)
  say(`${source.name} is marked as moved; the service and all commands refuse it.`)
  say(`${target.name} is complete.`)
  say(
    source.file === null
      ? `${source.name} keeps what is erased from now on, and certificates say so. Delete it when you trust the new one.`
      : `${source.file} keeps what is erased from now on: no erasure is completed until you delete it.`,
  )
  return { tables: [], chains: 0, entries: 0, wasComplete: true }
}

async function prepareSource({ source, say }: MoveOptions): Promise<void> {
  await assertUsable(source.control)
  say(`Schema ${migrationNames.at(-1)}.`)
}

/**
 * Creates the tables of an empty target and marks it. A half-moved target of this installation is used
 * again.
 */
async function prepareTarget(options: MoveOptions): Promise<void> {
  const { source, target, say } = options
  const present = (await target.control.introspection.getTables()).map(({ name }) => name)
  const ours = controlTables.filter((table) => present.includes(table))
  if (ours.length > 0) {
    if ((await migrationsIn(target.control)).length === 0) {
      throw new ControlPlaneError(
        `${target.name} has a table ${ours[0]} that is not Lethe’s; take an empty database.`,
      )
    }
    await migrate(target.control)
    const mark = await readMark(target.control)
    if (mark?.state === 'arriving') return assertOwn(mark, options)
    if (mark !== null) {
      throw new ControlPlaneError(
        `${target.name} has a control plane that was moved to ${mark.other}; take an empty database.`,
      )
    }
    if (!(await isEmptyOf(target.control, ours))) throw occupied(await installationIn(options), target.name)
  } else await migrate(target.control)
  await setMark(target.control, { ...markOf(options), state: 'arriving', other: source.name })
  say('The target is empty.')
}

function assertOwn(mark: MoveMark, { installation, source, target, say }: MoveOptions): void {
  if (mark.installation !== installation) {
    throw new ControlPlaneError(
      `${target.name} has half of another installation's control plane, from ${mark.other}; take an empty database.`,
    )
  }
  if (mark.other !== source.name) {
    throw new ControlPlaneError(
      `${target.name} has half of the control plane ${mark.other}; finish that move, or take an empty database.`,
    )
  }
  say('The target has a part of this move, which continues.')
}

function markOf({ installation }: MoveOptions): Pick<MoveMark, 'installation'> {
  return { installation }
}

/** Which data folder the control plane of the target belongs to, where it is known. */
async function installationIn({ source, target }: MoveOptions): Promise<'this' | 'another'> {
  const [own, other] = await Promise.all([source.reader, target.control].map(folderSecretIn))
  return own !== undefined && own === other ? 'this' : 'another'
}

function occupied(whose: 'this' | 'another', name: string): ControlPlaneError {
  return new ControlPlaneError(
    whose === 'this'
      ? `${name} already has a control plane of this installation; nothing is replaced. Take an empty database.`
      : `${name} has the control plane of another installation; take an empty database.`,
  )
}

interface CheckedChains {
  readonly chains: number
  readonly entries: number
  /** Every chain with its length and its end, and its problems. */
  readonly text: string
}

async function checkChains(
  control: Control,
  { withBrokenChains, say }: Pick<MoveOptions, 'withBrokenChains' | 'say'>,
): Promise<CheckedChains> {
  const found: string[] = []
  let [entries, broken] = [0, 0]
  for (const tenantId of await listTenants(control)) {
    for (const chain of Object.keys(chainTables) as (keyof typeof chainTables)[]) {
      const checked = await checkChain(control, chain, tenantId)
      entries += checked.entries
      if (checked.problems.length > 0) broken++
      for (const problem of checked.problems) say(`${tenantId} ${chain}: BROKEN: ${problem}`)
      found.push([tenantId, chain, checked.entries, checked.head, ...checked.problems].join(' '))
    }
  }
  if (broken > 0 && !withBrokenChains) {
    throw new ControlPlaneError(
      `${broken} of ${found.length} chains are broken; "lethe ledger verify" and "lethe audit verify" name them. --with-broken-chains moves them as they are.`,
    )
  }
  return { chains: found.length, entries, text: found.join('\n') }
}

function chainsText({ chains, entries }: CheckedChains): string {
  return `${chains} with ${entries} entries, checked entry by entry`
}

/** Pages between two lines of progress: some ten thousand rows. */
const pagesPerLine = 20

/** Copies what the target lacks and compares all of it; copies everything again where that differs. */
async function copyAll(options: MoveOptions, trx: ControlTransaction): Promise<Moved['tables']> {
  const { target, say } = options
  const differing = await copyAndCompare(options, trx)
  if (!Array.isArray(differing)) return differing.tables
  say(`The source has changed since the move was interrupted: ${differing.join(', ')}. It starts over.`)
  await transactOnce(target.control, (other) => dropTables(other))
  await prepareTarget(options)
  const again = await copyAndCompare(options, trx)
  if (!Array.isArray(again)) return again.tables
  throw new Error(`What arrived in ${target.name} differs from the source in: ${again.join(', ')}.`)
}

async function copyAndCompare(
  { failpoint, source, target, say }: MoveOptions,
  trx: ControlTransaction,
): Promise<string[] | { readonly tables: Moved['tables'] }> {
  for (const table of controlTables) {
    let pages = 0
    await copyTable(trx, target.control, table, async (rows) => {
      await failpoint(`page of ${table}`)
      if (++pages % pagesPerLine === 0) say(`${table}: ${rows} rows`)
    })
    await failpoint(`copied ${table}`)
  }
  const [tables, differing]: [{ table: string; rows: number; digest: string }[], string[]] = [[], []]
  for (const table of controlTables) {
    const same = await sameDigest(trx, target.control, table)
    if (same === null) differing.push(table)
    else tables.push({ table, ...same })
  }
  if (differing.length > 0) return differing
  for (const { table, rows, digest } of tables) {
    say(`${table.padEnd(22)} ${String(rows).padStart(10)} rows  sha256 ${digest.slice(0, 16)}`)
  }
  const rows = tables.reduce((sum, table) => sum + table.rows, 0)
  say(`${tables.length} tables with ${rows} rows are the same in ${source.name} and ${target.name}.`)
  return { tables }
}
