// Who acts: a person, an access token, the operator of the service, or a part of the service itself. An actor
// is data, and decisions compare its kind and id. Chains, the erasure journal, certificates and the interface
// contain it as a text of a fixed form: records that were hashed or sealed with it stay valid.

export const actorKinds = ['person', 'token', 'operator', 'system'] as const
type ActorKind = (typeof actorKinds)[number]

export interface Actor {
  readonly kind: ActorKind
  /**
   * The id of the person or the token; the way in which the operator acted, such as `command-line`; the part
   * of the service, such as `retention`. Empty where an old record names its actor by a text without an id;
   * `name` is that text then.
   */
  readonly id: string
  /** For people to read; free text that anybody may choose. Nothing is decided by it. */
  readonly name: string
  /** Only of the caller of a request, and never recorded. */
  readonly credential?: Credential
}

/** What the caller of a request authenticated with, which may end before the request acts. */
export interface Credential {
  /** The session that stands for the token; null where the token itself, or a sign-in code, was sent. */
  readonly sessionId: string | null
}

export function tokenActor(id: string, name: string): Actor {
  return { kind: 'token', id, name }
}

/** The operator of the service; `way` says how, such as `command-line`. */
export function operatorActor(way: string): Actor {
  return { kind: 'operator', id: way, name: way }
}

/** A part of the service that acts by itself, such as `retention`. */
export function systemActor(part: string): Actor {
  return { kind: 'system', id: part, name: part }
}

/** Whether the two are known to be the same actor. Actors without an id never are. */
export function isSameActor(first: Actor, second: Actor): boolean {
  return first.kind === second.kind && first.id === second.id && first.id !== ''
}

/**
 * Returns the text of an actor in records and responses, such as `token:ci (tok_…)` or `system:retention`. It
 * does not contain the name of a person, because records outlive the person.
 */
export function actorText({ kind, id, name }: Actor): string {
  if (id === '') return name
  return kind === 'token' ? `token:${name} (${id})` : `${kind}:${id}`
}

/**
 * Parses a text of {@link actorText}. For records that are sealed as text, such as the erasure journal;
 * everything else has columns. Any other text becomes an operator without an id, so that it is never taken
 * for a person or a token; {@link actorText} returns it unchanged.
 */
export function readActorText(text: string): Actor {
  const token = /^token:(?<name>.*) \((?<id>tok_[0-9a-z]+)\)$/s.exec(text)?.groups
  if (token?.id !== undefined && token.name !== undefined) return tokenActor(token.id, token.name)
  const [, kind, id] = /^(person|operator|system):(\S+)$/.exec(text) ?? []
  const known = actorKinds.find((one) => one === kind)
  if (known === undefined || id === undefined) return { kind: 'operator', id: '', name: text }
  return { kind: known, id, name: id }
}
