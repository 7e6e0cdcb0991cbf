// The refusal of an access token that has expired or was revoked. It names whose token it was, for the record
// of its organisation; a client learns only the code.

import type { Actor } from './actor.ts'
import { AppError } from './app-error.ts'

export class EndedToken extends AppError {
  readonly sender: { readonly tenantId: string; readonly actor: Actor }

  constructor(code: 'token_expired' | 'token_revoked', sender: EndedToken['sender']) {
    super(code)
    this.sender = sender
  }
}
