// The history of a black-box run, in the order in which the harness observed it. Every operation has an
// invocation and at most one outcome; both have the number of their position in the history. `fail` is a
// response that refused the operation; `unknown` is an operation without a response, which may have had its
// effect.

import type { Signal } from '../../server/telemetry/schema/tables.ts'

export type Outcome = 'ok' | 'fail' | 'unknown'

/** Event time in whole seconds since 1970. Half-open; null is no bound. */
export interface Span {
  readonly startS: number | null
  readonly endS: number | null
}

export interface Selected extends Span {
  readonly signals: readonly Signal[]
}

/** A numbered row; its number is unique in the run. */
export interface NumberedRow {
  readonly n: number
  readonly timeS: number
}

/** How the control plane was chosen when a backup was restored. */
export type ControlPlane = 'keep' | 'from-backup'

/** An operation, by its kind. `key` identifies a request before the service has given it an id. */
export type Operation =
  | {
      readonly f: 'send'
      readonly org: string
      readonly signal: Signal
      readonly rows: readonly NumberedRow[]
    }
  | { readonly f: 'read'; readonly org: string; readonly signal: Signal; readonly span: Span }
  /** Searches one row by its text or its id. */
  | { readonly f: 'probe'; readonly org: string; readonly n: number }
  | { readonly f: 'count'; readonly org: string; readonly selected: Selected }
  | {
      readonly f: 'erase'
      readonly org: string
      readonly key: string
      readonly selected: Selected
      readonly delayMinutes: number
    }
  | { readonly f: 'look'; readonly org: string; readonly key: string }
  | { readonly f: 'cancel'; readonly org: string; readonly key: string }
  | { readonly f: 'verify'; readonly org: string; readonly key: string }
  /** `backups` are those whose folder exists. */
  | {
      readonly f: 'certificate'
      readonly org: string
      readonly key: string
      readonly backups: readonly string[]
    }
  | { readonly f: 'hold'; readonly org: string; readonly key: string; readonly selected: Selected }
  | { readonly f: 'look-hold'; readonly org: string; readonly key: string }
  | { readonly f: 'release'; readonly org: string; readonly key: string }
  | { readonly f: 'backup' }
  | { readonly f: 'restore'; readonly backup: string; readonly controlPlane: ControlPlane }
  /** Searches every file of the data folder for the texts of rows. */
  | { readonly f: 'search-files' }

/** An operation of one kind. */
export type Of<F extends Operation['f']> = Extract<Operation, { f: F }>

/** The outcome of an operation; its fields depend on the kind. */
export interface Value {
  /**
   * Of `read` and `probe`: the numbers seen, each as often as it was seen. Of `search-files`: the rows found.
   */
  readonly seen?: readonly number[]
  /** Of `read`: whether it read all pages. */
  readonly isWhole?: boolean
  readonly rows?: number
  /** Of a request or hold; null where the service doesn't know it. */
  readonly status?: string | null
  readonly isClean?: boolean
  readonly remaining?: Readonly<Record<string, number>>
  /** Of `certificate`: the backups it names, its `jti`, and its signature. Of `backup`: its id. */
  readonly backups?: readonly string[]
  readonly jti?: string
  readonly jws?: string
  readonly backup?: string
  /** HTTP status, exit code or error, for people. */
  readonly note?: string
  /** Of `search-files`: one file per row found. */
  readonly files?: readonly string[]
}

/** What happens to the service itself, besides the operations. */
export type Event =
  /** The serving process has ended: calls that it had not answered will have no effect any more. */
  { readonly f: 'process-ended' }

export interface Violation {
  readonly kind: string
  readonly about: string
}
