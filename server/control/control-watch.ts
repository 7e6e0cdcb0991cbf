// Whether the control-plane database answers, for pages that need no access token. However many clients ask
// for them, the database gets one statement at a time from here, and one a second at most; and nobody waits
// longer than two seconds, also where the database never answers.

import { AppError } from '../core/app-error.ts'
import type { Clock } from '../core/clock.ts'
import type { Control } from './database.ts'

/** How long an answer is good for everybody who asks, milliseconds. */
const keptMs = 1_000

/** A probe gives up after some seconds, and must have read the reason before. */
const answerMs = 2_000

interface ControlWatchOptions {
  /** Sends one statement, which must fail where the database can't be used. */
  readonly ask: () => Promise<unknown>
  readonly clock: Pick<Clock, 'sleep'>
  /** A clock that never goes back. */
  readonly elapsedMs: () => number
}

interface Asked {
  readonly atMs: number
  /** What is wrong, as soon as that is known or the time is over. */
  readonly fault: Promise<string | null>
  /** Whether the statement still runs, also after the time is over. */
  isRunning: boolean
}

export class ControlWatch {
  readonly #options: ControlWatchOptions
  #asked: Asked | null = null

  constructor(options: ControlWatchOptions) {
    this.#options = options
  }

  /** Returns what is wrong with the database, as a sentence for people; null where it answers. */
  fault(): Promise<string | null> {
    const nowMs = this.#options.elapsedMs()
    const isCurrent = this.#asked !== null && (this.#asked.isRunning || nowMs - this.#asked.atMs < keptMs)
    if (this.#asked === null || !isCurrent) this.#asked = this.#ask(nowMs)
    return this.#asked.fault
  }

  #ask(atMs: number): Asked {
    const { ask, clock } = this.#options
    const ended = new AbortController()
    const answer = ask().then(() => null, sentenceOf)
    const silence = clock.sleep(answerMs, ended.signal).then(() => silent)
    const asked: Asked = { atMs, fault: Promise.race([answer, silence]), isRunning: true }
    void answer.then(() => {
      asked.isRunning = false
      ended.abort()
    })
    return asked
  }
}

/** The statement of a watch: reads a table that each control plane has. */
export function asking(control: Control): () => Promise<unknown> {
  return () => control.selectFrom('instance').select('key').limit(1).execute()
}

const silent = `The control-plane database does not answer within ${answerMs / 1000} s.`

/** Refusals are written for clients. What another error says may be for the operator alone. */
function sentenceOf(error: unknown): string {
  return error instanceof AppError ? error.message : 'The control-plane database returns an error.'
}
