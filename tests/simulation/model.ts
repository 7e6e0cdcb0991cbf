// The model: what must be true, kept in plain maps and written from server/deletion/SPEC.md without its code:
// which rows exist, who may see them, what a request hides, refuses and removes, and which transitions exist.
// A row with an open state (an attempt may have removed it, a write was never answered) may exist or not
// until it is read.

import assert from 'node:assert/strict'
import { type Signal, type TableName, tables } from '../../server/telemetry/schema/tables.ts'
import { type Counted, keyOf, type SentRow, type StoreName } from './telemetry.ts'

export interface Range {
  readonly startNs: bigint | null
  readonly endNs: bigint | null
}

interface Selected {
  readonly signals: readonly Signal[]
  readonly range: Range
}

export type Status =
  | 'awaiting_approval'
  | 'scheduled'
  | 'held'
  | 'running'
  | 'verifying'
  | 'completed'
  | 'incomplete'
  | 'failed'
  | 'cancelled'
  | 'rejected'
  | 'expired'

export interface Request extends Selected {
  readonly id: string
  readonly tenantId: string
  readonly scope: 'range' | 'all'
  /** The service's number of the request, in the order of the requests. */
  readonly seq: number
  readonly createdAtMs: number
  readonly startsAtMs: number | null
  readonly approveByMs: number | null
  readonly delayMinutes: number
  readonly refuseLate: boolean
  readonly requestedBy: string
  /** Whether a second person has approved it. */
  readonly isApproved: boolean
  readonly key: string | null
  readonly status: Status
  /** As the service counts and names them. */
  readonly attempts: number
  readonly forgiven: number
  readonly crashes: number
  /** A restore brought back what it erases, and it was not completed again. */
  readonly cameBack: boolean
  readonly retryAtMs: number | null
  readonly heldBy: readonly string[]
  /** When it was last completed. */
  readonly doneAtMs: number | null
}

interface Hold extends Selected {
  readonly id: string
  readonly tenantId: string
  readonly isActive: boolean
}

/**
 * A row, once per arrival. `open`: an attempt may have removed it. `unanswered`: it may never have arrived.
 */
export interface Arrival extends SentRow {
  readonly tenantId: string
  readonly signal: Signal
  readonly state: 'there' | 'open' | 'unanswered' | 'pending' | 'gone'
}

const signalOf = new Map(tables.map(({ name, signal }) => [name, signal]))

function signalOfTable(table: StoreName): Signal {
  return signalOf.get(table as TableName) ?? assert.fail(`${table} has no signal.`)
}

export const hiding = new Set<Status>(['scheduled', 'held', 'running', 'verifying', 'incomplete', 'failed'])
export const fencing = new Set<Status>(['running', 'verifying', 'incomplete', 'failed'])
export const final = new Set<Status>(['completed', 'failed', 'cancelled', 'rejected', 'expired'])

/** Every transition, as `from to`. */
const moves = new Set(
  `awaiting_approval running, awaiting_approval scheduled, awaiting_approval rejected, awaiting_approval expired, awaiting_approval cancelled,
  scheduled cancelled, scheduled running, scheduled completed, held cancelled, held running, running held, running cancelled,
  running awaiting_approval, running running, running verifying, running incomplete, running completed, running failed, verifying held, verifying completed,
  verifying incomplete, verifying failed, incomplete running, incomplete completed, incomplete failed,
  failed running, failed completed, completed running, cancelled running, rejected running, expired running`
    .split(',')
    .map((move) => move.trim()),
)

export function isMove(from: string | null, to: string): boolean {
  return from === null
    ? ['awaiting_approval', 'scheduled', 'running', 'completed'].includes(to)
    : moves.has(`${from} ${to}`)
}

export type Rule = 'none' | 'all' | 'always'

/**
 * Whether a range needs a second person under a rule. One without a start, or longer than 31 days, counts as
 * a full erasure.
 */
export function needsSecondPerson(rule: Rule, { startNs, endNs }: Range): boolean {
  const couldBeAll = startNs === null || endNs === null || endNs - startNs > 31n * 86_400_000_000_000n
  return rule === 'always' || (rule === 'all' && couldBeAll)
}

function contains({ startNs, endNs }: Range, timeNs: bigint): boolean {
  return (startNs === null || timeNs >= startNs) && (endNs === null || timeNs < endNs)
}

function selects({ signals, range }: Selected, row: { signal: Signal; timeNs: bigint }): boolean {
  return signals.includes(row.signal) && contains(range, row.timeNs)
}

export function includes(wide: Selected, narrow: Selected): boolean {
  const [w, n] = [wide.range, narrow.range]
  return (
    narrow.signals.every((signal) => wide.signals.includes(signal)) &&
    (w.startNs === null || (n.startNs !== null && w.startNs <= n.startNs)) &&
    (w.endNs === null || (n.endNs !== null && n.endNs <= w.endNs))
  )
}

export function meets(a: Selected, b: Selected): boolean {
  const before = (x: Range, y: Range) => x.startNs === null || y.endNs === null || x.startNs < y.endNs
  return (
    a.signals.some((signal) => b.signals.includes(signal)) &&
    before(a.range, b.range) &&
    before(b.range, a.range)
  )
}

/** Everything that a restore brings back. */
export interface Snapshot {
  readonly arrivals: readonly Arrival[]
  readonly requests: ReadonlyMap<string, Request>
  readonly holds: ReadonlyMap<string, Hold>
  /** Requests that were completed when it was taken. */
  readonly done: ReadonlySet<string>
}

export class Model {
  arrivals: Arrival[] = []
  requests = new Map<string, Request>()
  holds = new Map<string, Hold>()

  requestsOf(tenantId: string): Request[] {
    return [...this.requests.values()].filter((request) => request.tenantId === tenantId)
  }

  activeHolds(tenantId: string): Hold[] {
    return [...this.holds.values()].filter((hold) => hold.isActive && hold.tenantId === tenantId)
  }

  /** Whether a hold keeps a part of what a request selects. A hold without rows keeps nothing. */
  isKept(request: Selected & { readonly tenantId: string }): boolean {
    return this.arrivals.some(
      (row) =>
        row.tenantId === request.tenantId &&
        row.state === 'there' &&
        selects(request, row) &&
        this.isHeld(row),
    )
  }

  isHidden(row: Arrival): boolean {
    return this.requestsOf(row.tenantId).some(
      (request) => hiding.has(request.status) && selects(request, row),
    )
  }

  isHeld(row: Arrival): boolean {
    return this.activeHolds(row.tenantId).some((hold) => selects(hold, row))
  }

  /**
   * Whether a fence refuses rows that come in one export: it compares the time between a table's first and
   * last row.
   */
  isFenced(tenantId: string, rows: readonly SentRow[]): boolean {
    const fences = this.requestsOf(tenantId).filter(({ status }) => fencing.has(status))
    return [...Map.groupBy(rows, ({ table }) => table)].some(([table, own]) => {
      const times = own.map(({ timeNs }) => timeNs).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
      const [first = 0n, last = 0n] = [times[0], times.at(-1)]
      const extent = { signals: [signalOfTable(table)], range: { startNs: first, endNs: last + 1n } }
      return fences.some((fence) => meets(fence, extent))
    })
  }

  /** Rows that a completed request always refuses. */
  isLate(tenantId: string, row: SentRow): boolean {
    return this.requestsOf(tenantId).some((request) => {
      if (!request.refuseLate || request.status !== 'completed' || request.doneAtMs === null) return false
      const isLater = row.timeNs >= BigInt(request.doneAtMs) * 1_000_000n
      return !isLater && selects(request, { signal: signalOfTable(row.table), timeNs: row.timeNs })
    })
  }

  arrive(tenantId: string, rows: readonly SentRow[], state: Arrival['state'], of?: Signal): Arrival[] {
    const arrived = rows.map((row) => ({ ...row, tenantId, signal: of ?? signalOfTable(row.table), state }))
    this.arrivals.push(...arrived)
    return arrived
  }

  /** Sets the state of arrivals whose outcome is known now. */
  settle(rows: readonly Arrival[], state: Arrival['state']): void {
    const settled = new Set(rows)
    this.arrivals = this.arrivals.map((row) => (settled.has(row) ? { ...row, state } : row))
  }

  /** Marks what an attempt in progress, or one that begins now, may remove from here on. */
  exposeToAttempts(nowMs: number): void {
    const atWork = [...this.requests.values()].filter(
      ({ heldBy, status, startsAtMs }) =>
        (fencing.has(status) && status !== 'failed') ||
        (status === 'scheduled' && (startsAtMs ?? 0) <= nowMs) ||
        (status === 'held' && heldBy.some((id) => !this.holds.get(id)?.isActive)),
    )
    this.#change((row) => {
      if (row.state !== 'there' || this.isHeld(row)) return row.state
      const isAtRisk = atWork.some((request) => request.tenantId === row.tenantId && selects(request, row))
      return isAtRisk ? 'open' : row.state
    })
  }

  /** Removes the selection of a completed request from the model. */
  erase(request: Request): void {
    assert.ok(!this.isKept(request), `${request.id} completed although a hold keeps a part of it`)
    this.#change((row) => (row.tenantId === request.tenantId && selects(request, row) ? 'gone' : row.state))
  }

  #change(stateOf: (row: Arrival) => Arrival['state']): void {
    this.arrivals = this.arrivals
      .map((row) => {
        const state = stateOf(row)
        return state === row.state ? row : { ...row, state }
      })
      .filter(({ state }) => state !== 'gone')
  }

  snapshot(): Snapshot {
    const completed = [...this.requests.values()].filter(({ status }) => status === 'completed')
    return {
      arrivals: this.arrivals,
      requests: new Map(this.requests),
      holds: new Map(this.holds),
      done: new Set(completed.map(({ id }) => id)),
    }
  }

  /** How often each row must and may be counted, by readers or in the tables. */
  expected(
    tenantId: string,
    through: 'readers' | 'tables',
  ): ReadonlyMap<string, { least: number; most: number }> {
    const counts = new Map<string, { least: number; most: number }>()
    for (const row of this.arrivals) {
      if (row.tenantId !== tenantId) continue
      if (through === 'readers' && (row.table === 'anomalies' || this.isHidden(row))) continue
      assert.ok(
        through === 'tables' || row.state !== 'open',
        `${keyOf(row)} can be read while it is being erased`,
      )
      const { least, most } = counts.get(keyOf(row)) ?? { least: 0, most: 0 }
      counts.set(keyOf(row), { least: least + (row.state === 'there' ? 1 : 0), most: most + 1 })
    }
    return counts
  }

  /** Reads from the tables the state of rows whose state was open; while no attempt acts, it stays. */
  learn(tenantId: string, stored: Counted): void {
    const left = new Map(stored)
    const take = (row: Arrival) => {
      const n = left.get(keyOf(row)) ?? 0
      left.set(keyOf(row), n - 1)
      return n > 0
    }
    const own = this.arrivals.filter((row) => row.tenantId === tenantId)
    const isPending = new Set(own.filter(({ state }) => state === 'pending').map(keyOf))
    for (const row of own) if (row.state === 'there') take(row)
    const fates = new Map<Arrival, Arrival['state']>()
    for (const row of own) {
      if ((row.state !== 'open' && row.state !== 'unanswered') || isPending.has(keyOf(row))) continue
      fates.set(row, take(row) ? 'there' : 'gone')
    }
    this.#change((row) => fates.get(row) ?? row.state)
  }
}

/** Differences between what was counted and what is expected; empty where there are none. */
export function differences(
  expected: ReadonlyMap<string, { least: number; most: number }>,
  counted: Counted,
): string[] {
  const lacking = [...expected]
    .filter(([key, { least }]) => (counted.get(key) ?? 0) < least)
    .map(([key, { least }]) => `${key}: ${counted.get(key) ?? 0} instead of ${least}`)
  const surplus = [...counted]
    .filter(([key, n]) => n > (expected.get(key)?.most ?? 0))
    .map(([key, n]) => `${key}: ${n} instead of at most ${expected.get(key)?.most ?? 0}`)
  return [...lacking, ...surplus]
}
