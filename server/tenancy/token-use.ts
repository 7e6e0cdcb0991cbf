// Records when a token was last used, for people who decide which tokens to keep. It is written rarely,
// because requests are frequent, and it is never a reason to refuse a request.

import { tokenUseMinutes } from '../../contract/organisation/tenancy.ts'
import type { Control } from '../control/database.ts'
import { AppError } from '../core/app-error.ts'

const writtenEveryMs = tokenUseMinutes * 60_000

interface UsedToken {
  readonly token_id: string
  readonly last_used_at_ms: number | null
}

export class TokenUses {
  readonly #control: Control
  /** Tokens whose use is being written: requests that come at once write it once. */
  readonly #writing = new Set<string>()

  constructor(control: Control) {
    this.#control = control
  }

  /**
   * Returns whether it was written. Where the database refuses the write, as on a full disk, the token keeps
   * its earlier use.
   */
  async note({ last_used_at_ms, token_id }: UsedToken, nowMs: number): Promise<boolean> {
    if (last_used_at_ms !== null && nowMs - last_used_at_ms < writtenEveryMs) return false
    if (this.#writing.has(token_id)) return false
    this.#writing.add(token_id)
    try {
      await this.#control
        .updateTable('access_tokens')
        .set({ last_used_at_ms: nowMs })
        .where('id', '=', token_id)
        .where('revoked_at_ms', 'is', null)
        .execute()
      return true
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      return false
    } finally {
      this.#writing.delete(token_id)
    }
  }
}
