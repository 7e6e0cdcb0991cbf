// Which service calls which, according to the spans of some time. Of services without spans nothing is known:
// they are neither connected nor unconnected.

/** How many calls lie between a service and what it depends on, at most; deeper trees are rare. */
const hopsMax = 6
/** A name in a set of names, without the name. */
const memberBytes = 40

export class CallGraph {
  readonly #callees = new Map<string, Set<string>>()
  /** By service, the name of its component: the smallest of its services. */
  readonly #components = new Map<string, string>()
  /**
   * Results of {@link reached}, which is asked for every pair of anomalies. Only of services that call
   * others: the empty graph is shared by all organisations and must not remember their names.
   */
  readonly #reached = new Map<string, ReadonlySet<string>>()

  constructor(calls: Iterable<readonly [caller: string, callee: string]>) {
    const near = new Map<string, Set<string>>()
    for (const [caller, callee] of calls) {
      if (caller === callee) continue
      addTo(this.#callees, caller, callee)
      addTo(near, caller, callee)
      addTo(near, callee, caller)
    }
    for (const service of [...near.keys()].sort()) {
      if (this.#components.has(service)) continue
      for (const member of reachedFrom(near, service, Number.POSITIVE_INFINITY)) {
        this.#components.set(member, service)
      }
    }
  }

  /** Whether one of the two calls the other, directly or through others. */
  isCall(one: string, other: string): boolean {
    if (this.areApart(one, other) || one === other) return false
    return this.#reaches(one, other) || this.#reaches(other, one)
  }

  #reaches(caller: string, callee: string): boolean {
    return this.#callees.has(caller) && this.reached(caller).has(callee)
  }

  /** Whether both were seen, and nothing connects them. */
  areApart(one: string, other: string): boolean {
    const [component, otherComponent] = [this.#components.get(one), this.#components.get(other)]
    return component !== undefined && otherComponent !== undefined && component !== otherComponent
  }

  /** The service and everything that it calls, directly or through others. */
  reached(service: string): ReadonlySet<string> {
    const known = this.#reached.get(service)
    if (known !== undefined) return known
    const found = reachedFrom(this.#callees, service, hopsMax)
    if (this.#callees.has(service)) this.#reached.set(service, found)
    return found
  }

  /** An estimate of the memory that it takes at most, with everything that it remembers. */
  get bytesMax(): number {
    const names = [...this.#components.keys()].reduce((chars, name) => chars + name.length, 0)
    const members = this.#callees.size * this.#components.size
    return 2 * names + memberBytes * (members + this.#components.size)
  }
}

function addTo(sets: Map<string, Set<string>>, key: string, value: string): void {
  const found = sets.get(key)
  if (found === undefined) sets.set(key, new Set([value]))
  else found.add(value)
}

function reachedFrom(next: ReadonlyMap<string, ReadonlySet<string>>, start: string, hops: number) {
  const found = new Set([start])
  let edge = [start]
  for (let hop = 0; hop < hops && edge.length > 0; hop++) {
    edge = edge.flatMap((service) => [...(next.get(service) ?? [])]).filter((one) => !found.has(one))
    for (const service of edge) found.add(service)
  }
  return found
}
