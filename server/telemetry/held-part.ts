// What a legal hold keeps of an organisation's telemetry. Every room that erases or changes derived telemetry
// uses it.

import type { TimeRange } from '../core/time-range.ts'
import type { Signal } from './schema/tables.ts'

/** A part of an organisation's telemetry that a legal hold keeps. */
export interface HeldPart {
  readonly signals: readonly Signal[]
  readonly range: TimeRange
}

/** A legal hold that is in force. */
export interface ActiveHold extends HeldPart {
  readonly holdId: string
}
