// The roles of people and tokens, and the groups of roles that an operation may name.

import { z } from 'zod'

/** Roles of people and tokens. `ingest` may only write telemetry. */
export const roles = ['owner', 'admin', 'member', 'viewer', 'ingest'] as const
export const Role = z.enum(roles).meta({ id: 'Role' })
export type Role = z.infer<typeof Role>

/** Roles that erase, govern and read evidence. */
export const administrators = ['owner', 'admin'] as const satisfies readonly Role[]
/** Roles that change detectors. */
export const editors = ['owner', 'admin', 'member'] as const satisfies readonly Role[]
/** Roles that read telemetry and anomalies. */
export const readers = ['owner', 'admin', 'member', 'viewer'] as const satisfies readonly Role[]
/** Roles that send telemetry. */
export const senders = ['owner', 'admin', 'member', 'ingest'] as const satisfies readonly Role[]
