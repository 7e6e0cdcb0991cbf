// The newest rows of columns that grow: values, scores and edges of the buckets that a run reports on. Memory
// is bounded by the number of rows that are kept.

type Column = Float64Array | Uint8Array
type Columns = Readonly<Record<string, Column>>

/** Room for more rows than are kept, so that they are seldom moved. */
const spareShare = 0.25

export class NewestRows {
  private readonly most: number
  private columns: Record<string, Column> = {}
  private count = 0

  /** `most`: how many rows are kept at least; Infinity keeps all. */
  constructor(most: number) {
    this.most = most
  }

  get length(): number {
    return this.count
  }

  /** Adds rows. All columns have the same number; an absent column is NaN, or zero in bytes. */
  add(rows: number, added: Columns): void {
    const capacity = Math.min(...Object.values(this.columns).map(({ length }) => length))
    if (this.count === 0) this.adopt(rows, added)
    else if (this.count + rows <= capacity) this.write(added)
    else {
      this.move(rows)
      this.write(added)
    }
    this.count += rows
  }

  /** Views of the newest rows, valid until rows are added. */
  last(rows: number): Record<string, Column> {
    const from = this.count - rows
    return Object.fromEntries(
      Object.entries(this.columns).map(([name, column]) => [name, column.subarray(from, this.count)]),
    )
  }

  /** The first rows are kept as they came where all of them are to be kept. */
  private adopt(rows: number, added: Columns): void {
    const drop = Math.max(0, rows - this.most)
    this.count = -drop
    this.columns = Object.fromEntries(
      Object.entries(added).map(([name, column]) => [name, drop === 0 ? column : column.slice(drop)]),
    )
  }

  /** Moves the newest rows to columns with room for more. */
  private move(rows: number): void {
    const kept = Math.min(this.count, this.most)
    const room = Number.isFinite(this.most) ? Math.ceil(this.most * spareShare) : kept
    const moved = Object.entries(this.last(kept)).map(([name, column]) => {
      const wide = blankLike(column, kept + rows + room)
      wide.set(column)
      return [name, wide] as const
    })
    this.columns = Object.fromEntries(moved)
    this.count = kept
  }

  private write(added: Columns): void {
    for (const [name, column] of Object.entries(added)) {
      const [any] = Object.values(this.columns)
      this.columns[name] ??= blankLike(column, any?.length ?? 0)
      this.columns[name].set(column, this.count)
    }
  }
}

function blankLike(column: Column, length: number): Column {
  return column instanceof Uint8Array ? new Uint8Array(length) : new Float64Array(length).fill(Number.NaN)
}
