// Sessions of the console, and the one-time codes that open one. Of both secrets only the hash is stored.

import { type Kysely, sql } from 'kysely'

const statements = [
  `create table sessions (
    id text primary key,
    tenant_id text not null,
    token_id text not null,
    secret_hash text not null unique,
    created_at_ms bigint not null,
    seen_at_ms bigint not null,
    ends_at_ms bigint not null
  )`,
  'create index sessions_by_token on sessions (tenant_id, token_id)',
  `create table sign_in_codes (
    code_hash text primary key,
    tenant_id text not null,
    token_id text not null,
    ends_at_ms bigint not null
  )`,
  'create index sign_in_codes_by_token on sign_in_codes (tenant_id, token_id)',
]

export const sessions = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await sql.raw(statement).execute(db)
  },
}
