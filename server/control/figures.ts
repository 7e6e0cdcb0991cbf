// What a control plane counts of its own database, for the metrics page and for benches.

import { AppError } from '../core/app-error.ts'

/** Why a statement failed, where the database or the way to it is the cause. */
const reasons = { overloaded: 'busy', storage_full: 'full', storage_unavailable: 'unavailable' } as const
type ControlFailure = (typeof reasons)[keyof typeof reasons]

interface Connections {
  /** Open to the database. */
  readonly open: number
  /** Statements that wait for a free one. */
  readonly waiting: number
}

export class ControlFigures {
  readonly #connections: () => Connections
  #statements = 0
  readonly #failures: Record<ControlFailure, number> = { busy: 0, full: 0, unavailable: 0 }

  constructor(connections: () => Connections) {
    this.#connections = connections
  }

  /** Statements sent so far, with those that begin and end transactions. */
  get statements(): number {
    return this.#statements
  }

  get failures(): Readonly<Record<ControlFailure, number>> {
    return this.#failures
  }

  get connections(): Connections {
    return this.#connections()
  }

  countStatement(): void {
    this.#statements++
  }

  /** Counts an error of a statement or a connection; other errors are our own and count nothing. */
  countFailure(error: unknown): void {
    if (error instanceof AppError && error.code in reasons) {
      this.#failures[reasons[error.code as keyof typeof reasons]]++
    }
  }
}
