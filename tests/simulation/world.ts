// A simulated world: the service, the model beside it, random choices, and the comparison after every step. A
// difference ends the run with the seed, the number of the step, and the steps before it.

import assert from 'node:assert/strict'
import { ChainWalk } from '../../server/audit/chain.ts'
import { checkChain } from '../../server/audit/live-check.ts'
import { chainTables, readChainFrom } from '../../server/audit/log.ts'
import { actorTextIn } from '../../server/control/actor-columns.ts'
import { systemClock } from '../../server/core/clock.ts'
import type { RequestRow } from '../../server/deletion/requests/request.ts'
import { openRandom, type Random } from '../../server/demo/random.ts'
import type { TenantPlace } from '../../server/telemetry/engine.ts'
import {
  differences,
  final,
  isMove,
  Model,
  needsSecondPerson,
  type Request,
  type Rule,
  type Snapshot,
  type Status,
} from './model.ts'
import type { Withdraws } from './prediction.ts'
import type { Answered, Subject } from './subject.ts'
import { keyOf, tableNames } from './telemetry.ts'
import { type ClockState, SimulatedTime } from './time.ts'

export interface Organisation {
  readonly place: TenantPlace
  /** Tokens of two owners; neither created the other. */
  readonly secrets: readonly [string, string]
}

/** A write or a hold that waits until an erasure unlocks its placement. */
interface Waiting {
  readonly settled: Promise<() => Promise<void>>
}

/** A backup, and the state of the model when it was taken. */
export interface Saved {
  readonly folder: string
  readonly snapshot: Snapshot
  readonly rules: World['rules']
  readonly clock: ClockState
}

const chains = ['audit', 'ledger'] as const

const msPerDay = 86_400_000

/** A response that was sent before the end of the process arrives within this time. */
const answerWaitMs = 20

export class World {
  readonly subject: Subject
  readonly organisations: readonly Organisation[]
  readonly random: Random
  model = new Model()
  readonly time = new SimulatedTime()
  /** Closed placements: a swap was promised and not made. */
  readonly closed = new Set<number>()
  /**
   * Requests whose last attempt ended with the process. Their steps still count as acting once a person
   * retries them, until the next pass.
   */
  readonly cutOff = new Set<string>()
  waiting: Waiting[] = []
  /** The rule of a second person by organisation, at any time from now on. */
  readonly rules = new Map<string, (atMs: number) => Rule>()
  /** The value of `rules` when a request was accepted: another one means that a rule was set since. */
  readonly acceptedUnder = new Map<string, ((atMs: number) => Rule) | undefined>()
  readonly backups: Saved[] = []
  /** Requests of which an attempt has ever begun, or that a wider one has completed. */
  readonly begun = new Map<string, Request>()
  /** The service's name of the owner of a secret. */
  readonly names = new Map<string, string>()
  /** Organisations that were changed since the last check. */
  readonly touched = new Set<Organisation>()
  /** Whether an erasure is paused during a pass. */
  isStanding = false
  /** How many passes were begun to be killed; the named points take turns. */
  kills = 0
  readonly events: string[] = []
  readonly counts = { steps: 0, checks: 0, rows: 0, erasures: 0, faults: 0, crashes: 0, restores: 0 }
  #walks = new Map<string, { walk: ChainWalk; statuses: Map<string, string> }>()
  #serial = 0

  constructor(subject: Subject, organisations: readonly Organisation[], seed: number) {
    this.subject = subject
    this.organisations = organisations
    this.random = openRandom(seed)
  }

  nextId(): string {
    return String(++this.#serial)
  }

  pick<T>(from: readonly T[]): T {
    assert.ok(from.length > 0, 'the list to pick from is empty')
    return from[Math.floor(this.random() * from.length)] as T
  }

  /** Picks an organisation that is about to be changed. */
  pickOrganisation(): Organisation {
    const own = this.pick(this.organisations)
    this.touched.add(own)
    return own
  }

  chance(of: number): boolean {
    return this.random() < of
  }

  log(what: string): void {
    this.events.push(`${this.counts.steps}: ${what}`)
  }

  /**
   * After every step: requests, tables, readers, and chains agree with the model.
   *
   * @param orElse statuses that are right too
   */
  async check(
    expected: ReadonlyMap<string, Status> | 'any move' = new Map(),
    orElse: ReadonlyMap<string, Status> = new Map(),
  ): Promise<void> {
    this.counts.checks++
    await this.#compareRequests(expected, orElse)
    const stored = await this.subject.stored()
    const anomalies = await this.subject.control.selectFrom('anomalies').select(['id', 'tenant_id']).execute()
    for (const { place } of this.organisations) {
      const { tenantId } = place
      const own = anomalies.filter((anomaly) => anomaly.tenant_id === tenantId)
      const derived = own.map(({ id }) => [keyOf({ table: 'anomalies', id }), 1] as const)
      const counted = new Map([...(stored.get(tenantId) ?? []), ...derived])
      this.#assertSame(
        `the tables of ${tenantId}`,
        differences(this.model.expected(tenantId, 'tables'), counted),
      )
      this.model.learn(tenantId, counted)
    }
    for (const own of this.#toRead()) {
      const { tenantId } = own.place
      // A row that isn't in a table can't be seen there.
      const counted = stored.get(tenantId) ?? new Map()
      const names = tableNames.filter((name) => [...counted.keys()].some((key) => key.startsWith(`${name} `)))
      const seen = await this.subject.visible(own.place, names)
      const wrong = differences(this.model.expected(tenantId, 'readers'), seen)
      this.#assertSame(`what readers of ${tenantId} see`, wrong)
    }
    this.touched.clear()
    for (const { place } of this.organisations) await this.#followChains(place.tenantId)
  }

  /**
   * The changed organisations, and one of the others in turn, because reading costs more than everything
   * else.
   */
  #toRead(): Organisation[] {
    const turn = this.organisations[this.counts.steps % this.organisations.length]
    return this.organisations.filter((own) => own === turn || this.touched.has(own))
  }

  /** Whether a request has to be approved before its first attempt, because of a rule that was set since. */
  asksApproval({ id, isApproved, range, tenantId }: Request): boolean {
    if (isApproved || !this.acceptedUnder.has(id)) return false
    const rule = this.rules.get(tenantId)
    if (rule === undefined || rule === this.acceptedUnder.get(id)) return false
    return needsSecondPerson(rule(this.subject.nowMs()), range)
  }

  /**
   * Which requests of retention that have not begun are withdrawn now: what the rule keeps, and any at its
   * turn while the clock is in doubt.
   */
  async withdrawals(): Promise<Withdraws> {
    const rules = await this.subject.control.selectFrom('retention_policies').selectAll().execute()
    const dayStartMs = Math.floor(this.subject.nowMs() / msPerDay) * msPerDay
    const isKept = ({ range, signals, tenantId }: Request) =>
      signals.some((signal) => {
        const rule = rules.find((one) => one.tenant_id === tenantId && one.signal === signal)
        if (rule === undefined || this.time.state.isInDoubt) return rule === undefined
        return range.endNs === null || range.endNs > BigInt(dayStartMs - rule.days * msPerDay) * 1_000_000n
      })
    return (request, isItsTurn) =>
      request.requestedBy === 'system:retention' &&
      ((isItsTurn && this.time.state.isInDoubt) || isKept(request))
  }

  touchAll(): void {
    for (const own of this.organisations) this.touched.add(own)
  }

  /** The control plane was restored: the chains are checked from their start again. */
  forgetChains(): void {
    this.#walks = new Map()
  }

  /** Compares both complete chains with the requests. */
  async checkWholeChains(): Promise<void> {
    for (const { place } of this.organisations) {
      for (const chain of chains) {
        const { problems } = await checkChain(this.subject.control, chain, place.tenantId)
        this.#assertSame(`the ${chain} of ${place.tenantId}`, problems)
      }
    }
  }

  async #compareRequests(
    expected: ReadonlyMap<string, Status> | 'any move',
    orElse: ReadonlyMap<string, Status>,
  ): Promise<void> {
    const rows = await this.subject.control.selectFrom('deletion_requests').selectAll().execute()
    const unseen = new Set(this.model.requests.keys())
    for (const row of rows) {
      unseen.delete(row.request_id)
      const known = this.model.requests.get(row.request_id) ?? this.#adopt(row)
      const now = withBookkeeping(known, row)
      const isAllowed = expected === 'any move' || orElse.get(now.id) === now.status
      const isExpected = isAllowed || now.status === known.status || expected.get(now.id) === now.status
      const times = `starts at ${known.startsAtMs}, retried at ${known.retryAtMs}, now ${this.subject.nowMs()}`
      const wanted = expected === 'any move' ? expected : expected.get(now.id)
      const move = `${known.status} to ${now.status}, not ${wanted} (${times})`
      assert.ok(isExpected, `${now.id} went from ${move}: ${row.blocked_reason}`)
      const due = isAllowed ? now.status : (expected.get(now.id) ?? known.status)
      assert.equal(now.status, due, `${now.id} is ${now.status}: ${row.blocked_reason}`)
      assertClocks(row, this.time.wasSet)
      if (now.status === 'completed' && known.status !== 'completed') {
        this.counts.erasures++
        this.model.erase(now)
      }
      this.model.requests.set(now.id, now)
      if (now.attempts > 0 || now.status === 'completed') this.begun.set(now.id, now)
    }
    this.#assertSame('requests that have disappeared', [...unseen])
  }

  /** Only retention creates requests by itself, and only for old time. */
  #adopt(row: RequestRow): Request {
    assert.equal(
      actorTextIn('requested_by', row),
      'system:retention',
      `${row.request_id} has an unexpected requester`,
    )
    assert.ok(!this.time.state.isInDoubt, `${row.request_id} was created while the clock was in doubt`)
    const request = requestOf(row)
    this.model.requests.set(request.id, request)
    return request
  }

  async #followChains(tenantId: string): Promise<void> {
    for (const chain of chains) {
      const name = `${chain} of ${tenantId}`
      const { walk, statuses } = this.#walks.get(name) ?? { walk: new ChainWalk(), statuses: new Map() }
      this.#walks.set(name, { walk, statuses })
      const page = { afterSeq: walk.entries, limit: 10_000 }
      for (const entry of await readChainFrom(this.subject.control, chainTables[chain], tenantId, page)) {
        assert.equal(walk.next(entry), null, `the ${name} breaks at ${walk.entries + 1}`)
        if (chain === 'ledger') followMove(JSON.parse(entry.text), statuses)
      }
      if (chain === 'audit') continue
      for (const { id, status } of this.model.requestsOf(tenantId)) {
        assert.equal(statuses.get(id), status, `the ledger has another status of ${id}`)
      }
    }
  }

  /** Every call that waited for the placement has its response by now. */
  async settleWaiting(): Promise<void> {
    const waiting = this.waiting
    this.waiting = []
    for (const { settled } of waiting) await (await settled)()
  }

  /** The process is about to end: calls with a response keep it, the others never get one. */
  async loseWaiting(): Promise<void> {
    const isLate = systemClock.sleep(answerWaitMs).then(() => null)
    for (const { settled } of this.waiting) await (await Promise.race([settled, isLate]))?.()
    this.waiting = []
    const pending = this.model.arrivals.filter(({ state }) => state === 'pending')
    this.model.settle(pending, 'unanswered')
  }

  /** A hold whose response was lost may have been placed. */
  async learnHolds(): Promise<void> {
    for (const row of await this.subject.control.selectFrom('legal_holds').selectAll().execute()) {
      if (this.model.holds.has(row.hold_id)) continue
      this.model.holds.set(row.hold_id, {
        id: row.hold_id,
        tenantId: row.tenant_id,
        signals: JSON.parse(row.signals),
        range: { startNs: nsOf(row.range_start_ns), endNs: nsOf(row.range_end_ns) },
        isActive: row.released_at_ms === null,
      })
    }
  }

  #assertSame(what: string, wrong: readonly string[]): void {
    assert.equal(wrong.length, 0, `${what}: ${wrong.slice(0, 10).join('; ')}`)
  }
}

function followMove(
  entry: { request_id: string; from_status: string | null; to_status: string },
  statuses: Map<string, string>,
): void {
  const { request_id, from_status, to_status } = entry
  assert.equal(from_status, statuses.get(request_id) ?? null, `the ledger jumps at ${request_id}`)
  assert.ok(isMove(from_status, to_status), `there is no move from ${from_status} to ${to_status}`)
  statuses.set(request_id, to_status)
}

const neverHidden = new Set(['awaiting_approval', 'rejected', 'expired'])

/** Dates are those of the clock, so they are in order where the clock was never set. */
function assertClocks(row: RequestRow, wasSet: boolean): void {
  const { created_at_ms, finished_at_ms, hidden_at_ms, removed_at_ms, status, verified_at_ms } = row
  const what = `${row.request_id}, ${status}:`
  assert.equal(finished_at_ms !== null, final.has(status as Status), `${what} finished_at`)
  // Recorded after a restore, for an engine that had completed it: its times are unknown.
  if (status === 'completed' && hidden_at_ms === null) return
  assert.equal(verified_at_ms !== null, status === 'completed', `${what} verified_at`)
  if (neverHidden.has(status)) assert.equal(hidden_at_ms, null, `${what} hidden_at`)
  else if (status !== 'cancelled')
    assert.ok(wasSet ? hidden_at_ms !== null : (hidden_at_ms ?? 0) >= created_at_ms, `${what} hidden_at`)
  if (status === 'completed' && wasSet) assert.ok(removed_at_ms !== null, `${what} removed_at`)
  else if (status === 'completed') {
    assert.ok((hidden_at_ms ?? Infinity) <= (removed_at_ms ?? 0), `${what} removed_at`)
    assert.ok((removed_at_ms ?? Infinity) <= (verified_at_ms ?? 0), `${what} verified_at`)
  }
}

function nsOf(text: string | null): bigint | null {
  return text === null ? null : BigInt(text)
}

export function requestOf(row: RequestRow): Request {
  const request = {
    id: row.request_id,
    tenantId: row.tenant_id,
    scope: row.scope === 'all' ? ('all' as const) : ('range' as const),
    signals: JSON.parse(row.signals),
    range: { startNs: nsOf(row.range_start_ns), endNs: nsOf(row.range_end_ns) },
    createdAtMs: row.created_at_ms,
    delayMinutes: row.starts_at_ms === null ? 0 : (row.starts_at_ms - row.created_at_ms) / 60_000,
    refuseLate: row.refuse_late === 1,
    requestedBy: actorTextIn('requested_by', row),
    isApproved: row.approved_by_kind !== null,
    key: row.idempotency_key,
    approveByMs: row.approve_by_ms,
    status: row.status as Status,
  }
  return withBookkeeping(request, row)
}

/** Numbers and names that the service assigns; none of them is promised. */
function withBookkeeping(
  request: Omit<
    Request,
    | 'seq'
    | 'attempts'
    | 'cameBack'
    | 'forgiven'
    | 'crashes'
    | 'retryAtMs'
    | 'heldBy'
    | 'doneAtMs'
    | 'startsAtMs'
  >,
  row: RequestRow,
): Request {
  return {
    ...request,
    status: row.status as Status,
    startsAtMs: row.starts_at_ms,
    approveByMs: row.approve_by_ms,
    isApproved: row.approved_by_kind !== null,
    // Numbered again where a restore has recorded it again.
    seq: row.seq,
    attempts: row.attempts,
    forgiven: row.attempts_forgiven,
    crashes: row.crashes,
    cameBack: row.came_back === 1,
    retryAtMs: row.retry_at_ms,
    heldBy: JSON.parse(row.progress).held_by,
    doneAtMs: row.finished_at_ms,
  }
}

/** Fails where the response is not the expected one. */
export function assertAnswer(answer: Answered, status: number, what: string): void {
  assert.equal(answer.status, status, `${what} returned ${answer.status} ${JSON.stringify(answer.body)}`)
}
