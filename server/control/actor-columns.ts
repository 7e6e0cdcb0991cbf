// Actors in the database: each has three columns, such as `requested_by_kind`, `requested_by_id` and
// `requested_by_name`, so that statements can select by actor. Decisions read kind and id; the name is for
// people.

import type { ColumnType } from 'kysely'
import { type Actor, actorKinds, actorText } from '../core/actor.ts'

type ActorColumn<Role extends string> = `${Role}_${'kind' | 'id' | 'name'}`

/** Columns of an actor that is written with the row and never changes. */
export type ActorColumns<Role extends string> = {
  [Column in ActorColumn<Role>]: ColumnType<string, string, never>
}

/** Columns of an actor that may act later; all are null until then. */
export type LaterActorColumns<Role extends string> = { [Column in ActorColumn<Role>]: string | null }

/** Returns the values of an actor's columns; `role` is the prefix of their names. */
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

/** Returns the actor of a row. Throws where the kind is unknown. */
export function readActor<Role extends string>(
  role: Role,
  row: Readonly<Record<ActorColumn<Role>, string>>,
): Actor {
  return actorOf(row[`${role}_kind` as const], row[`${role}_id` as const], row[`${role}_name` as const])
}

/** Returns the text of a row's actor, as responses and certificates have it. */
export function actorTextIn<Role extends string>(
  role: Role,
  row: Readonly<Record<ActorColumn<Role>, string>>,
): string {
  return actorText(readActor(role, row))
}

/** Returns a row's actor that may act later; null until then. Throws where the kind is unknown. */
export function readLaterActor<Role extends string>(
  role: Role,
  row: Readonly<Record<ActorColumn<Role>, string | null>>,
): Actor | null {
  const kind = row[`${role}_kind` as const]
  return kind === null ? null : actorOf(kind, row[`${role}_id` as const], row[`${role}_name` as const])
}

/** Returns the text of {@link readLaterActor}. */
export function laterActorTextIn<Role extends string>(
  role: Role,
  row: Readonly<Record<ActorColumn<Role>, string | null>>,
): string | null {
  const actor = readLaterActor(role, row)
  return actor === null ? null : actorText(actor)
}

function actorOf(stored: string, id: string | null, name: string | null): Actor {
  const kind = actorKinds.find((one) => one === stored)
  if (kind === undefined) throw new Error(`"${stored}" is not a kind of actor.`)
  return { kind, id: id ?? '', name: name ?? '' }
}
