// Where the control plane is: a file of SQLite, or a database of PostgreSQL. The only file that chooses
// between them.

import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { AddressProblem } from './address-problem.ts'
import type { Control } from './database.ts'
import { openPostgres } from './postgres/postgres.ts'
import { nameOf, type PostgresServer, postgresSchemes, readAddress } from './postgres/url.ts'
import { openSqlite } from './sqlite/sqlite.ts'

export type ControlPlace =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly server: PostgresServer }

/**
 * Reads the address of a control plane; undefined where it names no place of its own, as `sqlite:` does.
 * Throws AddressProblem.
 */
export function readControlPlace(text: string): ControlPlace | undefined {
  if (postgresSchemes.some((scheme) => text.startsWith(scheme))) {
    return { kind: 'postgres', server: readAddress(text) }
  }
  if (!text.startsWith(sqliteScheme)) {
    throw new AddressProblem(`must start with ${sqliteScheme} or ${postgresSchemes[0]}//.`)
  }
  const path = text.slice(sqliteScheme.length).replace(/^\/\//, '')
  return path === '' ? undefined : { kind: 'sqlite', path }
}

const sqliteScheme = 'sqlite:'

/** Whether an address had a password in it. */
export function hasPassword(place: ControlPlace | undefined): boolean {
  return place?.kind === 'postgres' && place.server.password !== undefined
}

/** The same place, reached with a password; a file has none. */
export function withPassword(place: ControlPlace, password: string): ControlPlace {
  return place.kind === 'postgres' ? { ...place, server: { ...place.server, password } } : place
}

/** Opens the control plane; creates the file of SQLite where there is none, with its folder. */
export function openControlAt(place: ControlPlace): Control {
  if (place.kind === 'postgres') return openPostgres(place.server)
  mkdirSync(dirname(place.path), { recursive: true })
  return openSqlite(place.path)
}

/** Whether there may be a control plane: a file that is absent is none, and a server can only be asked. */
export function mayHaveControl(place: ControlPlace): boolean {
  return place.kind === 'postgres' || existsSync(place.path)
}

/** Names the place in a sentence for the operator. Never contains a password. */
export function nameOfPlace(place: ControlPlace): string {
  return place.kind === 'postgres' ? nameOf(place.server) : place.path
}
