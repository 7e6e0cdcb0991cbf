// Row types of signing in: sessions of the console, and the codes that open one.

import type { Fixed } from './column-types.ts'

/** Sessions of the console. Each stands for an access token and is valid no longer than it. */
export interface SessionsTable {
  id: Fixed<string>
  tenant_id: Fixed<string>
  token_id: Fixed<string>
  /** SHA-256 of the secret in the cookie, hexadecimal. */
  secret_hash: Fixed<string>
  created_at_ms: Fixed<number>
  /** The last request, to the minute. */
  seen_at_ms: number
  ends_at_ms: Fixed<number>
}

/** One-time codes that sign in as an access token; a code that was used has no row. */
export interface SignInCodesTable {
  /** SHA-256 of the code, hexadecimal. */
  code_hash: Fixed<string>
  tenant_id: Fixed<string>
  token_id: Fixed<string>
  ends_at_ms: Fixed<number>
}
