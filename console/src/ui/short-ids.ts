// Short ids for rows of a table: the end of the id, because the beginning is the time of the creation. The
// whole id is in the title or in the expanded row.

/** `del_…46k75s`. */
export function shortId(id: string): string {
  return `${id.slice(0, 4)}…${id.slice(-6)}`
}

/** The actor with the end of its id: `token:ci (tok_…0bk3ab)`. One without an id is returned as it is. */
export function shortActor(actor: string): string {
  return actor.replace(/\((\w+)\)$/, (_, id: string) => `(${shortId(id)})`)
}
