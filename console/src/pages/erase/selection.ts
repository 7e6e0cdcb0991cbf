// The selection of an erasure, in the address: a link restores the whole form except the note, which may be
// private, and the typed word. Bounds are sent to the service unchanged.

import type { z } from 'zod'
import {
  type CreateDeletion,
  type DeletionRequest,
  deletionReasons,
} from '../../../../contract/deletion/requests.ts'
import type { AddressState } from '../../ui/address.ts'

export const signalNames = ['metrics', 'logs', 'traces'] as const satisfies DeletionRequest['signals']
type SignalName = (typeof signalNames)[number]

type Reason = (typeof deletionReasons)[number]

export interface Selection {
  readonly scope: DeletionRequest['scope']
  /** RFC 3339 in UTC; null for everything before `end`. */
  readonly start: string | null
  /** Null until it is chosen. */
  readonly end: string | null
  readonly signals: readonly SignalName[]
  readonly delayMinutes: number
  readonly refusesLate: boolean
  readonly reason: Reason | null
}

export function selectionOf(state: AddressState): Selection {
  const named = (state.signals ?? '').split(',')
  const signals = signalNames.filter((signal) => named.includes(signal))
  const delay = Number(state.delay ?? 0)
  return {
    scope: state.scope === 'all' ? 'all' : 'range',
    start: instantOf(state.from),
    end: instantOf(state.to),
    signals: signals.length === 0 ? signalNames : signals,
    delayMinutes: Number.isInteger(delay) && delay > 0 ? delay : 0,
    refusesLate: state.late === 'refuse',
    reason: deletionReasons.find((reason) => reason === state.reason) ?? null,
  }
}

/** Relative ranges, which links from reading pages carry, are no bounds of an erasure. */
function instantOf(text: string | undefined): string | null {
  return text === undefined || Number.isNaN(Date.parse(text)) ? null : text
}

/** The missing or wrong input that prevents counting; null where there is none. */
export function problemOf({ end, scope, start }: Selection): string | null {
  if (scope === 'all') return null
  if (end === null) return 'Choose where the range ends.'
  if (start !== null && Date.parse(start) >= Date.parse(end)) return 'The start must be before the end.'
  return null
}

/** The parts of a request that select; the preview and the erasure send the same. */
export function selectionBody({ end, scope, signals, start }: Selection): SelectionBody {
  return {
    scope,
    signals: [...signals],
    ...(scope === 'range' && start !== null && { range_start: start }),
    ...(scope === 'range' && end !== null && { range_end: end }),
  }
}

type Sent = z.input<typeof CreateDeletion>
type SelectionBody = Pick<Sent, 'scope' | 'signals' | 'range_start' | 'range_end'>

export interface Confirmation {
  readonly confirm: string
  readonly note: string
  readonly previewId: string
}

export function requestBody(selection: Selection, { confirm, note, previewId }: Confirmation): Sent {
  const { delayMinutes, reason, refusesLate } = selection
  return {
    ...selectionBody(selection),
    confirm,
    preview_id: previewId,
    ...(reason !== null && { reason }),
    ...(note.trim() !== '' && { note: note.trim() }),
    ...(delayMinutes > 0 && { delay_minutes: delayMinutes }),
    ...(refusesLate && { refuse_late: true }),
  }
}
