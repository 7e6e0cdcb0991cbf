// Counts refused requests of each organisation's own tokens, in memory, for its administrators: by reason,
// operation and token, in all and by minute. Nothing of a body, a query or a header is kept. The memory is
// bounded: kinds for each organisation, and organisations; what was refused longest ago is forgotten first,
// of the token with the most kinds, so that one token can't replace what others show.

import {
  meaningOf,
  type Refusal,
  type RefusalList,
  refusalHours,
  refusalKindsMax,
  refusalMinutes,
} from '../../contract/organisation/refusals.ts'
import { type Clock, instantText } from '../core/clock.ts'
import { shortText } from '../core/shortened.ts'
import type { RefusedRequest } from '../http/refused-request.ts'

/** 25 kB each where all their kinds are refused every minute, so that all of them take 25 MB. */
const organisationsKept = 1_000

/** Characters of a path. Those of the operations are shorter; others are what a client wrote. */
const pathMax = 120

const msPerMinute = 60_000
const keptMs = refusalHours * 60 * msPerMinute

interface Kind {
  /** The latest one. */
  request: RefusedRequest
  count: number
  readonly firstAtMs: number
  lastAtMs: number
  /** Counts of the last minutes, by the number of the minute since 1970; oldest first. */
  readonly minutes: Map<number, number>
}

export class RefusalCounts {
  readonly #clock: Clock
  readonly #startedAtMs: number
  /** By organisation, then by kind; least recently refused first. */
  readonly #kinds = new Map<string, Map<string, Kind>>()

  constructor(clock: Clock) {
    this.#clock = clock
    this.#startedAtMs = clock.nowMs()
  }

  count(given: RefusedRequest): void {
    const request = { ...given, path: shortText(given.path, pathMax) }
    const { tenantId } = request.sender
    const nowMs = this.#clock.nowMs()
    const kinds = this.#kinds.get(tenantId) ?? new Map<string, Kind>()
    moveToEnd(this.#kinds, tenantId, kinds)
    if (this.#kinds.size > organisationsKept) forgetFirst(this.#kinds)
    const key = keyOf(request)
    const kind = kinds.get(key) ?? {
      request,
      count: 0,
      firstAtMs: nowMs,
      lastAtMs: nowMs,
      minutes: new Map(),
    }
    moveToEnd(kinds, key, kind)
    if (kinds.size > refusalKindsMax) forgetOfBusiest(kinds)
    kind.request = request
    kind.count += 1
    kind.lastAtMs = nowMs
    const minute = Math.floor(nowMs / msPerMinute)
    kind.minutes.set(minute, (kind.minutes.get(minute) ?? 0) + 1)
    if (kind.minutes.size > refusalMinutes) forgetFirst(kind.minutes)
  }

  /** Latest first. What is too old is forgotten here. */
  of(tenantId: string): RefusalList {
    const nowMs = this.#clock.nowMs()
    const kinds = this.#kinds.get(tenantId) ?? new Map<string, Kind>()
    for (const [key, { lastAtMs }] of kinds) if (lastAtMs <= nowMs - keptMs) kinds.delete(key)
    return {
      since: instantText(Math.max(this.#startedAtMs, nowMs - keptMs)),
      items: [...kinds.values()].reverse().map((kind) => toWire(kind, nowMs)),
    }
  }
}

function toWire({ count, firstAtMs, lastAtMs, minutes, request }: Kind, nowMs: number): Refusal {
  const { method, path, protocol, reason, sender, status } = request
  const oldestMinute = Math.floor(nowMs / msPerMinute) - refusalMinutes
  return {
    code: reason,
    status,
    meaning: meaningOf(reason),
    protocol,
    method,
    path,
    token: sender.actor.kind === 'token' ? { id: sender.actor.id, name: sender.actor.name } : null,
    count,
    first_at: instantText(firstAtMs),
    last_at: instantText(lastAtMs),
    minutes: [...minutes]
      .filter(([minute]) => minute > oldestMinute)
      .map(([minute, counted]) => ({ time: instantText(minute * msPerMinute), count: counted })),
  }
}

/** All paths without an operation are one kind of a token, because a client may try any number of them. */
function keyOf({ hasOperation, method, path, protocol, reason, sender, status }: RefusedRequest): string {
  const kind = hasOperation ? [reason, status, protocol, method, path] : []
  return JSON.stringify([sender.actor.id, ...kind])
}

/** Makes an entry the last one to be forgotten. */
function moveToEnd<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key)
  map.set(key, value)
}

/** Forgets the oldest kind of the token that has the most. */
function forgetOfBusiest(kinds: Map<string, Kind>): void {
  const byToken = Map.groupBy(kinds, ([, { request }]) => request.sender.actor.id)
  const [busiest] = [...byToken.values()].toSorted((a, b) => b.length - a.length)
  const oldest = busiest?.[0]?.[0]
  if (oldest !== undefined) kinds.delete(oldest)
}

function forgetFirst<Key>(map: Map<Key, unknown>): void {
  const [first] = map.keys()
  if (first !== undefined) map.delete(first)
}
