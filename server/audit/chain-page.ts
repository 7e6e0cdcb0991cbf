// Pages of a chain from its newest entry back, all entries or those that a filter selects. The order is the
// number of the entry, so pages stay the same while the chain grows. A filtered page searches a limited
// number of entries, stretch by stretch, and its organisation takes a turn before each further one: the
// database answers on the event loop, so a filter that matches hardly anything must not read a long chain at
// once, nor may a hundred such pages each read a stretch in every round of the loop.

import { nsPerMs } from '../../contract/values/instant.ts'
import type { Control } from '../control/database.ts'
import { dialectOf } from '../control/dialect.ts'
import { instantText } from '../core/clock.ts'
import type { TimeRange } from '../core/time-range.ts'
import type { SealedEntry } from './chain.ts'
import { type ChainTable, readHead } from './log.ts'

/** Which entries of a chain are listed; all where nothing is given. */
export interface EntryFilter {
  /** By the time of the entry. Clocks go back, so matching entries need not follow each other. */
  readonly range: TimeRange
  /**
   * Texts that fields of the entry must equal. An `action` without a dot matches every action of that noun.
   */
  readonly fields: Readonly<Record<string, string | undefined>>
}

interface NumberedEntry extends SealedEntry {
  readonly seq: number
}

/** A part of a chain, newest first. */
interface ChainPart {
  readonly entries: readonly NumberedEntry[]
  /** The search continues with the entries before this number; null where none are left. */
  readonly before: number | null
}

/** How much a page searches where no index finds its entries. */
interface SearchLimits {
  /** Entries that are searched at once: about two milliseconds, because each must be parsed. */
  readonly stretchEntries: number
  /** Entries that a page searches at most. */
  readonly pageEntries: number
}

const searchLimits: SearchLimits = { stretchEntries: 1_000, pageEntries: 50_000 }

interface ChainPage {
  readonly limit: number
  readonly before: number | null
  readonly filter: EntryFilter
  /** Resolves when the organisation may continue on the event loop. */
  readonly turn: () => Promise<unknown>
}

/**
 * Returns up to `limit` entries with numbers below `before`; fewer where the page has reached its limit of
 * searched entries.
 */
export async function readChainPage(
  control: Control,
  table: ChainTable,
  tenantId: string,
  page: ChainPage,
  limits: SearchLimits = searchLimits,
): Promise<ChainPart> {
  const { filter, limit, turn } = page
  const first = page.before ?? (await readHead(control, table, tenantId)).entries + 1
  const isSearch = conditionsOf(filter) > (isIndexed(filter) ? 1 : 0)
  const lowest = isSearch ? Math.max(1, first - limits.pageEntries) : 1
  const width = isSearch ? limits.stretchEntries : first
  const entries: NumberedEntry[] = []
  for (let before = first; before > lowest; ) {
    if (before < first) await turn()
    const from = Math.max(lowest, before - width)
    const stretch = { filter, from, before, limit: limit - entries.length }
    entries.push(...(await selectEntries(control, table, tenantId, stretch)))
    if (entries.length === limit) return { entries, before: entries.at(-1)?.seq ?? null }
    before = from
  }
  return { entries, before: lowest > 1 ? lowest : null }
}

function conditionsOf({ fields, range }: EntryFilter): number {
  const given = [range.startNs ?? undefined, range.endNs ?? undefined, ...Object.values(fields)]
  return given.filter((bound) => bound !== undefined).length
}

/** Whether some field has an index (migration 0011), which returns its entries in their order. */
function isIndexed({ fields: { action, actor, request_id, target, to_status } }: EntryFilter): boolean {
  const whole = action === undefined || isNoun(action) ? undefined : action
  return [actor, whole, target, request_id, to_status].some((text) => text !== undefined)
}

function isNoun(action: string): boolean {
  return !action.includes('.')
}

interface Stretch {
  readonly filter: EntryFilter
  readonly from: number
  readonly before: number
  readonly limit: number
}

/** Finds the numbers first: an index has those, and not the entries. */
function selectEntries(
  control: Control,
  table: ChainTable,
  tenantId: string,
  { before, filter, from, limit }: Stretch,
): Promise<NumberedEntry[]> {
  const field = (name: string) => dialectOf(control).jsonField('entry', name)
  const { fields, range } = filter
  let numbers = control
    .selectFrom(table)
    .select('seq')
    .where('tenant_id', '=', tenantId)
    .where('seq', '>=', from)
    .where('seq', '<', before)
    .orderBy('seq', 'desc')
    .limit(limit)
  for (const [name, text] of Object.entries(fields)) {
    if (text === undefined) continue
    numbers =
      name === 'action' && isNoun(text)
        ? // The sign after the dot in ASCII: all texts that begin with the noun and a dot.
          numbers.where(field(name), '>=', `${text}.`).where(field(name), '<', `${text}/`)
        : numbers.where(field(name), '=', text)
  }
  if (range.startNs !== null) numbers = numbers.where(field('at'), '>=', millisecondText(range.startNs))
  if (range.endNs !== null) numbers = numbers.where(field('at'), '<', millisecondText(range.endNs))
  return control
    .selectFrom(table)
    .select(['seq', 'entry as text', 'hash'])
    .where('tenant_id', '=', tenantId)
    .where('seq', 'in', numbers)
    .orderBy('seq', 'desc')
    .execute()
}

/** The first millisecond at or after the instant, in the form of entries, whose order is that of time. */
function millisecondText(ns: bigint): string {
  return instantText(Number((ns + nsPerMs - 1n) / nsPerMs))
}
