// Actors at rest: each has three columns, such as `requested_by_kind`, `requested_by_id` and
// `requested_by_name`, so that a statement can ask for who acted. Decisions read kind and
// id; the name is for people.

import type { ColumnType } from 'kysely'
import { type Actor, actorKinds, actorText } from '../core/actor.ts'

type ActorColumn<Role extends string> = `${Role}_${keyof Actor}`

/** The columns of an actor that is written with the row, and never changed. */
export type ActorColumns<Role extends string> = {
  [Column in ActorColumn<Role>]: ColumnType<string, string, never>
}

/** The columns of an actor that may act later; all are null until then. */
export type LaterActorColumns<Role extends string> = { [Column in ActorColumn<Role>]: string | null }

/** The values of an actor's columns; `role` is what the names of the columns begin with. */
export function actorValues<Role extends string>(
  role: Role,
  { id, kind, name }: Actor,
): Record<ActorColumn<Role>, string> {
  return {
    [`${role}_kind` as const]: kind,
    [`${role}_id` as const]: id,
    [`${role}_name` as const]: name,
  } as Record<ActorColumn<Role>, string>
}

/** The actor of a row. Throws where the kind is unknown. */
export function readActor<Role extends string>(
  role: Role,
  row: Readonly<Record<ActorColumn<Role>, string>>,
): Actor {
  return actorOf(row[`${role}_kind` as const], row[`${role}_id` as const], row[`${role}_name` as const])
}

/** The text of a row's actor, as answers and certificates carry it. */
export function actorTextIn<Role extends string>(
  role: Role,
  row: Readonly<Record<ActorColumn<Role>, string>>,
): string {
  return actorText(readActor(role, row))
}

/** The same of an actor that may act later; null where nobody has acted yet. */
export function laterActorTextIn<Role extends string>(
  role: Role,
  row: Readonly<Record<ActorColumn<Role>, string | null>>,
): string | null {
  const kind = row[`${role}_kind` as const]
  if (kind === null) return null
  return actorText(actorOf(kind, row[`${role}_id` as const], row[`${role}_name` as const]))
}

function actorOf(stored: string, id: string | null, name: string | null): Actor {
  const kind = actorKinds.find((one) => one === stored)
  if (kind === undefined) throw new Error(`"${stored}" is no kind of actor.`)
  return { kind, id: id ?? '', name: name ?? '' }
}
