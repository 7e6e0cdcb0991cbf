// Ids as a row of a table shows them: with their end, which differs where the beginning is the time of the
// creation. What shows one has the whole id as its title, or opens to it.

/** `del_…46k75s`. */
export function shortId(id: string): string {
  return `${id.slice(0, 4)}…${id.slice(-6)}`
}

/** The actor with the end of its id: `token:ci (tok_…0bk3ab)`. One without an id is returned as it is. */
export function shortActor(actor: string): string {
  return actor.replace(/\((\w+)\)$/, (_, id: string) => `(${shortId(id)})`)
}
