// The address of the control plane: a file of SQLite, or a database of PostgreSQL. The only file that chooses
// between them.

import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { AddressProblem } from './address-problem.ts'
import type { Control } from './database.ts'
import { openPostgres } from './postgres/postgres.ts'
import { nameOf, type PostgresServer, postgresSchemes, readAddress } from './postgres/url.ts'
import { logsOf, openSqlite } from './sqlite/sqlite.ts'

export type ControlAddress =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly server: PostgresServer }

/**
 * Reads the address of a control plane; undefined where it names no database, as `sqlite:` does. Throws
 * AddressProblem.
 */
export function readControlAddress(text: string): ControlAddress | undefined {
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
export function hasPassword(address: ControlAddress | undefined): boolean {
  return address?.kind === 'postgres' && address.server.password !== undefined
}

/** The same address, reached with a password; a file has none. */
export function withPassword(address: ControlAddress, password: string): ControlAddress {
  return address.kind === 'postgres' ? { ...address, server: { ...address.server, password } } : address
}

/** Opens the control plane; creates the file of SQLite where there is none, with its folder. */
export function openControlAt(address: ControlAddress): Control {
  if (address.kind === 'postgres') return openPostgres(address.server)
  mkdirSync(dirname(address.path), { recursive: true })
  return openSqlite(address.path)
}

/** Whether there may be a control plane: a file that is absent is none, and a server can only be asked. */
export function mayHaveControl(address: ControlAddress): boolean {
  return address.kind === 'postgres' || existsSync(address.path)
}

/** The files of a control plane of SQLite at this path; not all of them have to exist. */
export function controlFilesAt(path: string): string[] {
  return [path, ...logsOf(path)]
}

/** Names the address in a sentence for the operator. Never contains a password. */
export function nameOfControl(address: ControlAddress): string {
  return address.kind === 'postgres' ? nameOf(address.server) : address.path
}
