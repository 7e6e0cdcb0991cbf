// The three clocks of an erasure and the backups, each with its meaning. A clock that has not been reached
// shows the present work.

import type { ReactNode } from 'react'
import type { DeletionRequest } from '../../../../contract/deletion/requests.ts'
import { dayText, instantText } from '../../ui/instants.ts'
import { useZone } from '../../ui/preferences.ts'
import { countOf, durationText } from '../../ui/units.ts'

type ClockState = 'done' | 'now' | 'open' | 'warn'

export function Clocks({ request }: { readonly request: DeletionRequest }) {
  const { hidden_at, removed_at, status, verified_at } = request
  const isWorking = status === 'running' || status === 'verifying'
  const stateOf = (at: string | null, isNext: boolean): ClockState =>
    at !== null ? 'done' : isNext && isWorking ? 'now' : 'open'
  const stores = Object.keys(recordIn(request.detail.left_over)).length
  return (
    <ol className="clocks">
      <Clock name="hidden" state={stateOf(hidden_at, true)} at={hidden_at} request={request}>
        nobody reads it
      </Clock>
      <Clock name="removed" state={stateOf(removed_at, hidden_at !== null)} at={removed_at} request={request}>
        no file of the service contains it
      </Clock>
      <Clock
        name="verified"
        state={stateOf(verified_at, removed_at !== null)}
        at={verified_at}
        request={request}
      >
        {verified_at === null || stores === 0
          ? 'counted again by separate code'
          : `counted again: 0 left in ${countOf(stores, 'store')}`}
      </Clock>
      <Backups request={request} />
    </ol>
  )
}

interface ClockProps {
  readonly name: string
  readonly state: ClockState
  readonly at: string | null
  readonly request: DeletionRequest
  readonly children: ReactNode
}

function Clock({ at, children, name, request, state }: ClockProps) {
  const zone = useZone()
  return (
    <li className="clock" data-state={state}>
      <div className="clock-name">
        {state === 'done' ? '● ' : '○ '}
        {name}
      </div>
      <div className="clock-time" title={at ?? ''}>
        {at === null ? (state === 'now' ? 'now …' : 'not yet') : instantText(at, zone, { fraction: true })}
      </div>
      <div className="muted">
        {children}
        {at !== null && `, ${afterText(request, at)}`}
      </div>
    </li>
  )
}

function afterText({ created_at }: DeletionRequest, at: string): string {
  return `${durationText(Date.parse(at) - Date.parse(created_at))} after it was asked for`
}

function Backups({ request: { backups_clear_by } }: { readonly request: DeletionRequest }) {
  const zone = useZone()
  return (
    <li className="clock" data-state={backups_clear_by === null ? 'done' : 'warn'}>
      <div className="clock-name">{backups_clear_by === null ? '● ' : '○ '}backups</div>
      <div className="clock-time">
        {backups_clear_by === null ? 'clear' : `clear ${dayText(backups_clear_by, zone)}`}
      </div>
      <div className="muted">
        {backups_clear_by === null ? 'no known backup has a copy' : 'a backup has a copy until then'}
      </div>
    </li>
  )
}

/** A part of the free-form detail as an object; empty where it is something else. */
function recordIn(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
