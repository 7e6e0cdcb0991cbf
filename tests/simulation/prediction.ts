// The expected result of one undisturbed pass of the deletion loop, request by request, written from the
// order and the table of transitions in server/deletion/SPEC.md. A disturbed pass only has to use existing
// transitions.

import { final, includes, type Model, type Request, type Status } from './model.ts'

interface Mover {
  readonly request: Request
  status: Status
  attempts: number
}

/** What a pass depends on besides the requests. */
interface Known {
  readonly model: Model
  readonly asksApproval: (request: Request) => boolean
  readonly withdraws: Withdraws
}

/**
 * Whether a request of retention that has not begun is withdrawn: at its turn, or at any time of the pass.
 */
export type Withdraws = (request: Request, isItsTurn: boolean) => boolean

const retryPauseMaxMs = 300_000

/**
 * The expected status of every request after an undisturbed pass that begins at `nowMs`; delayed ones start
 * by `dueMs`.
 */
export function predictPass(known: Known, nowMs: number, dueMs: number): ReadonlyMap<string, Status> {
  const { model, withdraws } = known
  const movers = [...model.requests.values()]
    .sort((a, b) => a.seq - b.seq)
    .map((request): Mover => ({ request, status: request.status, attempts: request.attempts }))
  for (const mover of movers) {
    const { approveByMs, heldBy } = mover.request
    if (mover.status === 'awaiting_approval' && (approveByMs ?? 0) <= nowMs) mover.status = 'expired'
    if (mover.status === 'held' && (heldBy.length === 0 || heldBy.some((id) => !isActive(model, id)))) {
      mover.status = 'running'
    }
  }
  for (const own of Map.groupBy(movers, ({ request }) => request.tenantId).values()) {
    for (const mover of queueOf(own, nowMs, dueMs)) {
      if (final.has(mover.status)) continue
      attempt(mover, known)
      if (mover.status === 'completed') completeCovered(own, mover, known)
    }
  }
  for (const mover of movers) {
    const hasBegun = mover.attempts > 0 || !withdrawable.has(mover.status)
    if (!hasBegun && withdraws(mover.request, false)) mover.status = 'cancelled'
  }
  return new Map(movers.map(({ request, status }) => [request.id, status]))
}

function isActive(model: Model, holdId: string): boolean {
  return model.holds.get(holdId)?.isActive === true
}

function queueOf(own: readonly Mover[], nowMs: number, dueMs: number): Mover[] {
  const due = own.filter(
    ({ request, status }) =>
      (status === 'scheduled' && (request.startsAtMs ?? 0) <= dueMs) ||
      status === 'running' ||
      status === 'verifying' ||
      status === 'incomplete',
  )
  const ordered = [
    ...due.filter(({ request }) => request.scope === 'all'),
    ...due.filter(({ request }) => request.scope !== 'all'),
  ]
  const waiting = ordered.findIndex(({ request }) => {
    const waitMs = (request.retryAtMs ?? 0) - nowMs
    return waitMs > 0 && waitMs <= retryPauseMaxMs
  })
  return waiting === -1 ? ordered : ordered.slice(0, waiting)
}

const withdrawable = new Set<Status>(['scheduled', 'held', 'running'])

function attempt(mover: Mover, { asksApproval, model, withdraws }: Known): void {
  const { request } = mover
  if (request.crashes > 3 || request.attempts - request.forgiven >= 10) {
    mover.status = 'failed'
    return
  }
  if (model.activeHolds(request.tenantId).some((hold) => includes(hold, request))) {
    mover.status = 'held'
    return
  }
  if (mover.attempts === 0 && asksApproval(request)) {
    mover.status = 'awaiting_approval'
    return
  }
  if (mover.attempts === 0 && withdraws(request, true)) {
    mover.status = 'cancelled'
    return
  }
  mover.attempts++
  mover.status = model.isKept(request) ? 'held' : 'completed'
}

const coverable = new Set<Status>(['awaiting_approval', 'scheduled', 'running', 'incomplete', 'failed'])

function completeCovered(own: readonly Mover[], wide: Mover, { asksApproval }: Known): void {
  for (const other of own) {
    if (!coverable.has(other.status) || other.request.seq > wide.request.seq) continue
    if (!includes(wide.request, other.request)) continue
    const refusesUnasked = other.attempts === 0 && other.request.refuseLate && asksApproval(other.request)
    other.status = other.status === 'awaiting_approval' || refusesUnasked ? 'cancelled' : 'completed'
  }
}
