// Actions of people in a simulation, over the service's own interfaces: they request erasures, decide them,
// place and release holds, set rules. Each action knows from the model what the response must be, and updates
// the model.

import assert from 'node:assert/strict'
import { formatInstant } from '../../contract/values/instant.ts'
import { type Signal, signals } from '../../server/telemetry/schema/tables.ts'
import {
  fencing,
  includes,
  meets,
  needsSecondPerson,
  type Range,
  type Request,
  type Rule,
  type Status,
} from './model.ts'
import { mayWait } from './programs.ts'
import { edgesNs } from './telemetry.ts'
import { assertAnswer, type Organisation, requestOf, type World } from './world.ts'

const deletions = '/usage/storage/deletions'
const working = new Set<Status>(['running', 'verifying'])
const open = new Set<Status>([
  'awaiting_approval',
  'scheduled',
  'held',
  'running',
  'verifying',
  'incomplete',
  'failed',
])

interface Draft {
  readonly scope: 'range' | 'all'
  readonly signals: readonly Signal[]
  readonly range: Range
  readonly delayMinutes: number
  readonly refuseLate: boolean
}

function draft(world: World): Draft {
  const chosen = world.chance(0.5) ? [...signals] : signals.filter(() => world.chance(0.5))
  const selected = { signals: chosen.length === 0 ? ['logs' as const] : chosen }
  const delayMinutes = world.chance(0.2) ? world.pick([1, 60, 3000]) : 0
  if (world.chance(0.1)) {
    return {
      ...selected,
      scope: 'all',
      range: { startNs: null, endNs: null },
      delayMinutes,
      refuseLate: false,
    }
  }
  const [a, b] = [world.pick(edgesNs), world.pick(edgesNs)]
  const [startNs, endNs] = a < b ? [a, b] : [b, a]
  const isOpen = startNs === endNs || world.chance(0.25)
  // A request with refuse_late refuses forever, so it must not grow over the whole time.
  const refuseLate = world.chance(0.1) && edgesNs.indexOf(endNs) - edgesNs.indexOf(startNs) === 1
  return {
    ...selected,
    scope: 'range',
    range: { startNs: isOpen && !refuseLate ? null : startNs, endNs },
    delayMinutes,
    refuseLate: refuseLate && startNs !== endNs,
  }
}

function isSame(a: Draft, b: Draft): boolean {
  return (
    a.scope === b.scope &&
    a.delayMinutes === b.delayMinutes &&
    a.refuseLate === b.refuseLate &&
    a.signals.join() === b.signals.join() &&
    a.range.startNs === b.range.startNs &&
    a.range.endNs === b.range.endNs
  )
}

/** Requests an erasure; the response is a new request, an existing one, or the expected refusal. */
export async function ask(world: World): Promise<void> {
  const own = world.pickOrganisation()
  const { tenantId } = own.place
  const wanted = draft(world)
  const key = world.chance(0.1) ? `key-${Math.floor(world.random() * 5)}` : null
  const isWrong = world.chance(0.03)
  const secret = world.pick(own.secrets)
  const requests = world.model.requestsOf(tenantId)
  const sameKey = requests.find((request) => request.key !== null && request.key === key)
  const same =
    sameKey ??
    requests.find(
      (request) => open.has(request.status) && request.status !== 'failed' && isSame(request, wanted),
    )
  const byPeople = requests.filter(
    ({ requestedBy, status }) => open.has(status) && !requestedBy.startsWith('system:'),
  )
  const ofOne = byPeople.filter(({ requestedBy }) => requestedBy === world.names.get(secret))
  const tooMany = byPeople.length >= 40 || ofOne.length >= 20
  const besideAll = requests.some(
    ({ scope, signals: own, status }) =>
      scope === 'all' && working.has(status) && own.some((signal) => wanted.signals.includes(signal)),
  )
  const isReused = sameKey !== undefined && !isSame(sameKey, wanted)
  const due = isWrong || isReused ? 422 : same !== undefined ? 200 : tooMany ? 429 : besideAll ? 409 : 202
  const { startNs, endNs } = wanted.range
  world.log(`${tenantId} requests ${wanted.scope} ${wanted.signals} ${startNs}..${endNs}, ${due}`)
  const answer = await world.subject.ask('POST', deletions, {
    secret,
    ...(key !== null && { headers: { 'idempotency-key': key } }),
    json: {
      scope: wanted.scope,
      confirm: isWrong ? 'another' : tenantId,
      ...(wanted.signals.length < 3 && { signals: wanted.signals }),
      ...(startNs !== null && { range_start: formatInstant(startNs) }),
      ...(endNs !== null && { range_end: formatInstant(endNs) }),
      ...(wanted.delayMinutes > 0 && { delay_minutes: wanted.delayMinutes }),
      ...(wanted.refuseLate && { refuse_late: true }),
    },
  })
  assertAnswer(answer, due, 'requesting an erasure')
  if (due === 200) assert.equal(answer.body.request_id, same?.id)
  if (due !== 202) return
  const row = await world.subject.control
    .selectFrom('deletion_requests')
    .selectAll()
    .where('request_id', '=', answer.body.request_id)
    .executeTakeFirstOrThrow()
  const request = requestOf(row)
  assert.ok(isSame(request, wanted), 'the stored request differs from the one that was sent')
  assert.ok(
    requests.every(({ seq }) => seq < request.seq),
    'a later request is later in the order',
  )
  assert.equal(row.hidden_at_ms === null, request.status === 'awaiting_approval')
  const rule = world.rules.get(tenantId)
  const ruleNow = rule?.(world.subject.nowMs()) ?? 'none'
  const mustWait = needsSecondPerson(ruleNow, wanted.range)
  const isLimited = request.status === 'awaiting_approval' && !mustWait
  if (isLimited) {
    assert.equal(ruleNow, 'all', 'only this rule looks beyond the range')
    assert.match(await causeOf(world, request), /^(?:ranges_together|nothing_left)$/)
  } else {
    const begins = wanted.delayMinutes > 0 ? 'scheduled' : 'running'
    assert.equal(request.status, mustWait ? 'awaiting_approval' : begins)
  }
  world.model.requests.set(request.id, request)
  world.acceptedUnder.set(request.id, rule)
}

/** Why the request that was just created waits for approval. What others have erased is not in the model. */
async function causeOf(world: World, { id, tenantId }: Request): Promise<string> {
  const { entry } = await world.subject.control
    .selectFrom('ledger_entries')
    .select('entry')
    .where('tenant_id', '=', tenantId)
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirstOrThrow()
  const { facts, request_id } = JSON.parse(entry)
  assert.equal(request_id, id)
  return facts.approval_cause
}

const verbs = ['cancel', 'approve', 'reject', 'retry'] as const
type Verb = (typeof verbs)[number]
const fitting: Partial<Record<Status, readonly Verb[]>> = {
  awaiting_approval: ['approve', 'approve', 'approve', 'reject', 'cancel'],
  scheduled: ['cancel'],
  held: ['cancel'],
  incomplete: ['retry'],
  failed: ['retry'],
}

/** A person decides a request, of their own organisation or of another one. */
export async function decide(world: World): Promise<void> {
  const requests = [...world.model.requests.values()]
  if (requests.length === 0) return
  const waiting = requests.filter(
    ({ status }) => !['completed', 'cancelled', 'rejected', 'expired'].includes(status),
  )
  const request = world.pick(waiting.length > 0 && world.chance(0.9) ? waiting : requests)
  const verb = world.pick(world.chance(0.8) ? (fitting[request.status] ?? verbs) : verbs)
  const own = world.organisations.find(({ place }) => place.tenantId === request.tenantId)
  const isForeign = world.chance(0.05)
  const by = isForeign ? world.organisations.find((one) => one !== own) : own
  if (own === undefined || by === undefined) return
  world.touched.add(own)
  const secret = world.pick(by.secrets)
  const isRequester = request.requestedBy === world.names.get(secret)
  const to = decided(world, request, verb, isRequester)
  const due = isForeign ? 404 : to
  world.log(`${by.place.tenantId} wants to ${verb} ${request.id} (${request.status}), ${due}`)
  const answer = await world.subject.ask('POST', `${deletions}/${request.id}/${verb}`, {
    secret,
    ...(verb === 'reject' && { json: { reason: 'a simulation' } }),
  })
  assertAnswer(answer, typeof due === 'number' ? due : 200, `${verb} of a request that is ${request.status}`)
  if (typeof due !== 'number') world.model.requests.set(request.id, { ...request, status: due })
}

/** The status that a decision leads to, or the expected refusal. */
function decided(world: World, request: Request, verb: Verb, isRequester: boolean): Status | 403 | 409 {
  const { approveByMs, status } = request
  if (verb === 'retry') return status === 'failed' || status === 'incomplete' ? 'running' : 409
  if (verb === 'cancel') {
    const canCancel =
      ['awaiting_approval', 'scheduled', 'cancelled'].includes(status) ||
      // A request that ever began, also before a restore, may be half erased.
      (status === 'held' && !world.begun.has(request.id))
    return canCancel ? 'cancelled' : 409
  }
  if (status !== 'awaiting_approval' || (approveByMs ?? 0) <= world.subject.nowMs()) return 409
  if (verb === 'reject') return 'rejected'
  return isRequester ? 403 : 'scheduled'
}

/** Verifies a request again; a clean count may complete one that was given up or is not finished. */
export async function verify(world: World): Promise<void> {
  // While an erasure is paused, only those that the count can't complete, because completing waits for it.
  const countable = [...world.model.requests.values()].filter(({ status }) =>
    (world.isStanding ? ['completed', 'held'] : ['completed', 'incomplete', 'failed', 'held']).includes(
      status,
    ),
  )
  if (countable.length === 0 || (world.waiting.length > 0 && !world.isStanding)) return
  const request = world.pick(countable)
  const own = world.organisations.find(({ place }) => place.tenantId === request.tenantId)
  if (own === undefined) return
  world.touched.add(own)
  const answer = await world.subject.ask('POST', `${deletions}/${request.id}/verify`, {
    secret: own.secrets[0],
  })
  assertAnswer(answer, 200, 'verify')
  const selected = world.model.arrivals.filter(
    (row) =>
      row.tenantId === request.tenantId &&
      includes(request, { signals: [row.signal], range: { startNs: row.timeNs, endNs: row.timeNs + 1n } }) &&
      !world.model.isHeld(row),
  )
  world.log(`${request.id} (${request.status}) is verified again: ${answer.body.is_clean}`)
  const { is_clean: isClean } = answer.body
  const isThere = selected.some(({ state }) => state === 'there')
  assert.ok(!isThere || !isClean, 'a verification found nothing although there is something')
  const { remaining } = answer.body
  assert.ok(
    selected.length > 0 || isClean,
    `a verification found what does not exist: ${JSON.stringify(remaining)}`,
  )
  const isFinal = request.status === 'completed' || request.status === 'held'
  const completes = !isFinal && isClean && !world.model.isKept(request)
  await world.check(new Map([[request.id, completes ? 'completed' : request.status]]))
}

/** Places a legal hold, or releases one. */
export async function hold(world: World): Promise<void> {
  const own = world.pickOrganisation()
  const { tenantId } = own.place
  const active = [...world.model.holds.values()].filter((one) => one.tenantId === tenantId && one.isActive)
  const secret = world.pick(own.secrets)
  const toRelease = active.length > 0 && world.chance(0.6) ? world.pick(active) : null
  if (toRelease !== null) {
    world.log(`${tenantId} releases ${toRelease.id}`)
    const answer = await world.subject.ask('POST', `/usage/storage/holds/${toRelease.id}/release`, { secret })
    assertAnswer(answer, 200, 'releasing a hold')
    world.model.holds.set(toRelease.id, { ...toRelease, isActive: false })
    return
  }
  const { range, signals: held } = draft(world)
  const isTiny = world.chance(0.3)
  const bounds = isTiny ? { startNs: edgesNs[1] ?? 0n, endNs: (edgesNs[1] ?? 0n) + 1n } : range
  world.log(`${tenantId} places a hold on ${held} ${bounds.startNs}..${bounds.endNs}`)
  const answer = world.subject.ask('POST', '/usage/storage/holds', {
    secret,
    json: {
      case_ref: 'simulated',
      signals: held,
      ...(bounds.startNs !== null && { range_start: formatInstant(bounds.startNs) }),
      ...(bounds.endNs !== null && { range_end: formatInstant(bounds.endNs) }),
    },
  })
  // What a step is erasing, or must erase, can no longer be placed under a hold.
  const mayAct = world.isStanding || world.closed.has(own.place.placement)
  const isErasing = world.model
    .requestsOf(tenantId)
    .some(
      (request) =>
        (mayAct || world.cutOff.has(request.id)) &&
        request.attempts > 0 &&
        fencing.has(request.status) &&
        meets(request, { signals: held, range: bounds }),
    )
  const keep = async ({ body, status }: Awaited<typeof answer>) => {
    if (status === 503 && isErasing) return assert.equal(body.code, 'erasing')
    assert.equal(status, 201, JSON.stringify(body))
    world.model.holds.set(body.hold_id, {
      id: body.hold_id,
      tenantId,
      signals: held,
      range: bounds,
      isActive: true,
    })
  }
  if (world.isStanding && mayWait(world, own))
    world.waiting.push({ settled: answer.then((said) => () => keep(said)) })
  else await keep(await answer)
}

const msPerDay = 86_400_000
const rules = ['none', 'all', 'always'] as const satisfies readonly Rule[]

/** Sets which erasures need a second person, or what retention keeps. */
export async function rule(world: World): Promise<void> {
  const own = world.pickOrganisation()
  const { tenantId } = own.place
  const secret = world.pick(own.secrets)
  if (world.chance(0.3)) return retain(world, own, secret)
  const approval = world.pick<Rule>([...rules, 'none', 'none'])
  world.log(`${tenantId} sets the rule ${approval}`)
  assertAnswer(
    await world.subject.ask('PUT', '/usage/storage/deletion-policy', { secret, json: { approval } }),
    200,
    'a rule',
  )
  const nowMs = world.subject.nowMs()
  const before = world.rules.get(tenantId)?.(nowMs) ?? 'none'
  const isLooser = rules.indexOf(approval) < rules.indexOf(before)
  // A looser rule waits for a day, and for a clock that is not in doubt.
  const isPending = (atMs: number) => isLooser && (atMs < nowMs + msPerDay || world.time.isDoubted)
  world.rules.set(tenantId, (atMs) => (isPending(atMs) ? before : approval))
}

const retention = '/usage/storage/retention'

/**
 * Sets how long a signal is kept; where a shorter retention needs a second person, that person may approve
 * it.
 */
async function retain(world: World, own: Organisation, secret: string): Promise<void> {
  const { tenantId } = own.place
  const key = `${world.pick(signals)}_days`
  const days = world.pick([null, null, 5, 12, 30])
  const { body: kept } = await world.subject.ask('GET', retention, { secret })
  const isShorter = days !== null && (kept[key] === null || days < kept[key])
  const waits = isShorter && (world.rules.get(tenantId)?.(world.subject.nowMs()) ?? 'none') !== 'none'
  world.log(`${tenantId} sets its ${key} to ${days}${waits ? ', which waits' : ''}`)
  const set = await world.subject.ask('PATCH', retention, { secret, json: { [key]: days } })
  assertAnswer(set, waits ? 202 : 200, 'retention')
  assert.equal(set.body[key], waits ? kept[key] : days)
  if (!waits || world.chance(0.5)) return
  const change = set.body.pending.find((one: Record<string, unknown>) => one[key] === days)
  const approver = world.pick(own.secrets)
  const isRequester = change.requested_by === world.names.get(approver)
  world.log(`${change.id} is approved by ${isRequester ? 'its requester' : 'another'}`)
  const approved = await world.subject.ask('POST', `${retention}/changes/${change.id}/approve`, {
    secret: approver,
  })
  assertAnswer(approved, isRequester ? 403 : 200, 'approving retention')
  if (!isRequester) assert.equal(approved.body[key], days)
}
