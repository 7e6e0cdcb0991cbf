// What rows cost in a commit. Usually that is their size. Rows of many weeks cost more: each week of a table
// is a partition, and costs some 6 ms however few rows it has (partition-spread.ts). Requests of the same
// weeks share partitions, so costs are not added: a week counts once.

/** Rows with their partitions, as `partitionsOf` returns them. */
export interface CostedRows {
  /** Size of the encoded rows. */
  readonly bytes: number
  readonly partitions: ReadonlySet<number>
}

/**
 * Seven tables and the turn of a week cost no more than their bytes: what is sent about now has no more
 * partitions.
 */
const usualPartitions = 16

/** Each further partition costs as much as so many bytes: those of one request cost less than 8 MiB. */
const partitionBytes = 64 * 1024

/** Returns the cost of rows by themselves, see {@link costOf}. */
export function costOfRows({ bytes, partitions }: CostedRows): number {
  return costOf(bytes, partitions.size)
}

/** Returns the cost in bytes: at least those of the rows. */
function costOf(bytes: number, partitions: number): number {
  return Math.max(bytes, (partitions - usualPartitions) * partitionBytes)
}

/** The cost of rows that are committed together. */
export class CommitCost {
  #bytes = 0
  /** How many of the rows' requests have a partition. */
  readonly #partitions = new Map<number, number>()

  get bytes(): number {
    return this.#bytes
  }

  get partitions(): number {
    return this.#partitions.size
  }

  /** Bytes, see {@link costOf}. */
  get value(): number {
    return costOf(this.#bytes, this.#partitions.size)
  }

  /** Returns what the value would be with these rows too. */
  valueWith(rows: CostedRows): number {
    return costOf(this.#bytes + rows.bytes, this.partitionsWith(rows))
  }

  partitionsWith({ partitions }: CostedRows): number {
    let count = this.#partitions.size
    for (const partition of partitions) if (!this.#partitions.has(partition)) count++
    return count
  }

  add({ bytes, partitions }: CostedRows): void {
    this.#bytes += bytes
    for (const partition of partitions) {
      this.#partitions.set(partition, (this.#partitions.get(partition) ?? 0) + 1)
    }
  }

  /** Takes back what {@link add} added. */
  remove({ bytes, partitions }: CostedRows): void {
    this.#bytes -= bytes
    for (const partition of partitions) {
      const count = (this.#partitions.get(partition) ?? 0) - 1
      if (count > 0) this.#partitions.set(partition, count)
      else this.#partitions.delete(partition)
    }
  }
}

/** The cost of what waits or is being committed, by organisation. */
export class WaitingCost {
  readonly #costs = new Map<string, { readonly cost: CommitCost; requests: number }>()

  of(tenantId: string): number {
    return this.#costs.get(tenantId)?.cost.value ?? 0
  }

  /** Returns by how much the cost rises; never less than the bytes. */
  add(tenantId: string, rows: CostedRows): number {
    const known = this.#costs.get(tenantId) ?? { cost: new CommitCost(), requests: 0 }
    this.#costs.set(tenantId, known)
    const before = known.cost.value
    known.cost.add(rows)
    known.requests++
    return Math.max(rows.bytes, known.cost.value - before)
  }

  /** Takes back what {@link add} added. */
  remove(tenantId: string, rows: CostedRows): void {
    const known = this.#costs.get(tenantId)
    if (known === undefined) return
    known.cost.remove(rows)
    known.requests--
    if (known.requests === 0) this.#costs.delete(tenantId)
  }
}
