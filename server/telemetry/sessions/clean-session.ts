// A session of the engine's library in which every statement gets its own result, and all of it. The library
// keeps what a failed statement had written of its result, and puts it before the result of the session's
// next statement, whose reader may be of another organisation. And a statement that reaches its limit of time
// is sometimes cut off without an error. So after a failure nothing runs in the session until a statement
// with a known result returns exactly that, and a result that took longer than its limit is refused.

import { type ChdbResult, Session } from 'chdb'

export interface StatementOptions {
  readonly format?: string
  /** The limit that the text of the statement sets, seconds. */
  readonly maxSeconds?: number
}

/** What the library throws where a statement reaches its limit of time. */
const timeoutExceeded = 159

/** What was left is in the result of the first one, and the second one has its own result alone. */
const cleaningsMax = 3

/** Runs one statement at a time. */
export class CleanSession {
  readonly #session: Session
  #isClean = true
  #cleanings = 0

  constructor(...options: ConstructorParameters<typeof Session>) {
    this.#session = new Session(...options)
  }

  /** Throws the library's errors, also where the session can't be cleaned after an earlier failure. */
  async query(text: string, { format, maxSeconds }: StatementOptions = {}): Promise<ChdbResult> {
    if (!this.#isClean) await this.#clean()
    let result: ChdbResult
    try {
      result = await this.#session.queryAsync(text, format === undefined ? undefined : { format })
    } catch (error) {
      this.#isClean = false
      // At once, because a partial result may be large. Where it fails, the next statement tries again.
      await this.#clean().catch(() => undefined)
      throw error
    }
    if (maxSeconds !== undefined && result.elapsed >= maxSeconds)
      throw Object.assign(
        new Error(`Timeout exceeded: elapsed ${result.elapsed} s, maximum: ${maxSeconds} s`),
        {
          clickhouseCode: timeoutExceeded,
        },
      )
    return result
  }

  close(): void {
    this.#session.close()
  }

  async #clean(): Promise<void> {
    for (let tries = 0; tries < cleaningsMax; tries++) {
      const cleaning = ++this.#cleanings
      const result = await this.#session.queryAsync(`SELECT ${cleaning} AS cleaning`, {
        format: 'JSONEachRow',
      })
      if (!Buffer.from(`{"cleaning":${cleaning}}\n`).equals(result.bytes())) continue
      this.#isClean = true
      return
    }
    throw new Error('A session of the telemetry engine still has the result of a statement that failed')
  }
}
