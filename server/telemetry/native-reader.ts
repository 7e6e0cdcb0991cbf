// Reads ClickHouse's Native format. A result has the layout of the engine's memory, block by block and column
// by column: the engine does not write each value, and a column of numbers is copied here at once. The caller
// reads columns in their order. A column of another type than asked for, and bytes that end too early, throw.
// Numbers have the byte order of the machine, which is the engine's too.

const two32 = 4_294_967_296

/** 64-bit integers, or instants. */
export class Longs {
  readonly #halves: Uint32Array

  /** @param halves two numbers for each value, the lower half first */
  constructor(halves: Uint32Array) {
    this.#halves = halves
  }

  lower(row: number): number {
    return this.#halves[row * 2] ?? 0
  }

  upper(row: number): number {
    return this.#halves[row * 2 + 1] ?? 0
  }

  /** Returns an unsigned value; exact below 2^53. */
  at(row: number): number {
    return this.upper(row) * two32 + this.lower(row)
  }

  /** Returns the difference between a signed value and `origin`; exact where it is below 2^53. */
  from(origin: { readonly hi: number; readonly lo: number }, row: number): number {
    return ((this.upper(row) | 0) - origin.hi) * two32 + (this.lower(row) - origin.lo)
  }
}

/** A list of numbers for each row. */
export class Lists {
  /** The numbers of all rows, one after another. */
  readonly items: Float64Array
  readonly #ends: Longs

  constructor(ends: Longs, items: Float64Array) {
    this.#ends = ends
    this.items = items
  }

  start(row: number): number {
    return row === 0 ? 0 : this.#ends.at(row - 1)
  }

  end(row: number): number {
    return this.#ends.at(row)
  }

  at(row: number): Float64Array {
    return this.items.subarray(this.start(row), this.end(row))
  }

  /** Whether a row has this list; false where it contains a value that is not a number. */
  is(list: ArrayLike<number>, row: number): boolean {
    const start = this.start(row)
    if (this.end(row) - start !== list.length) return false
    for (let i = 0; i < list.length; i++) if (this.items[start + i] !== list[i]) return false
    return true
  }
}

/** A text for each row. */
export class Texts {
  readonly #bytes: Buffer
  /** Start and end of each text. */
  readonly #bounds: Uint32Array

  constructor(bytes: Buffer, bounds: Uint32Array) {
    this.#bytes = bytes
    this.#bounds = bounds
  }

  at(row: number): string {
    const [start = 0, end = 0] = this.#bounds.subarray(row * 2, row * 2 + 2)
    return start === end ? '' : this.#bytes.toString('utf8', start, end)
  }
}

export class NativeReader {
  readonly #bytes: Buffer
  #at = 0
  #rows = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /** Whether all blocks have been read. */
  get isDone(): boolean {
    return this.#at >= this.#bytes.length
  }

  /**
   * Begins the next block and returns its number of rows. Its columns must be read before the next block
   * begins.
   */
  block(): number {
    this.#varint()
    this.#rows = this.#varint()
    return this.#rows
  }

  longs(): Longs {
    this.#begin(/^(?:U?Int64|DateTime64\(.*\))$/)
    return this.#longs(this.#rows)
  }

  float64s(): Float64Array {
    this.#begin(/^Float64$/)
    return new Float64Array(this.#take(this.#rows * 8))
  }

  int32s(): Int32Array {
    this.#begin(/^Int32$/)
    return new Int32Array(this.#take(this.#rows * 4))
  }

  uint8s(): Uint8Array {
    this.#begin(/^(?:UInt8|Bool)$/)
    return new Uint8Array(this.#take(this.#rows))
  }

  texts(): Texts {
    this.#begin(/^String$/)
    const bounds = new Uint32Array(this.#rows * 2)
    for (let row = 0; row < this.#rows; row++) {
      // Nearly all texts are short, and each row has one.
      const first = this.#bytes[this.#at] ?? 128
      const length = first < 128 ? first : this.#varint()
      if (first < 128) this.#at++
      bounds[row * 2] = this.#step(length)
      bounds[row * 2 + 1] = this.#at
    }
    return new Texts(this.#bytes, bounds)
  }

  float64Lists(): Lists {
    this.#begin(/^Array\(Float64\)$/)
    const { count, ends } = this.#ends()
    return new Lists(ends, new Float64Array(this.#take(count * 8)))
  }

  /** Items are exact below 2^53. */
  uint64Lists(): Lists {
    this.#begin(/^Array\(UInt64\)$/)
    const { count, ends } = this.#ends()
    const longs = this.#longs(count)
    const items = new Float64Array(count)
    for (let i = 0; i < count; i++) items[i] = longs.at(i)
    return new Lists(ends, items)
  }

  /**
   * The end of each list of a column, as an offset into the items of all rows, and the number of all items.
   */
  #ends(): { readonly ends: Longs; readonly count: number } {
    const ends = this.#longs(this.#rows)
    return { ends, count: this.#rows === 0 ? 0 : ends.at(this.#rows - 1) }
  }

  #longs(count: number): Longs {
    return new Longs(new Uint32Array(this.#take(count * 8)))
  }

  /** Name and type precede each column. */
  #begin(expected: RegExp): void {
    const name = this.#word()
    const type = this.#word()
    if (!expected.test(type)) throw new RangeError(`The column ${name} is of the type ${type}`)
  }

  #word(): string {
    const length = this.#varint()
    const at = this.#step(length)
    return this.#bytes.toString('latin1', at, at + length)
  }

  #varint(): number {
    let [value, factor] = [0, 1]
    for (;;) {
      const byte = this.#bytes[this.#step(1)] ?? 0
      value += (byte & 127) * factor
      if (byte < 128) return value
      factor *= 128
    }
  }

  /** Copies, because numbers must lie at a multiple of their size. */
  #take(count: number): ArrayBuffer {
    const at = this.#step(count)
    const copy = new ArrayBuffer(count)
    new Uint8Array(copy).set(this.#bytes.subarray(at, at + count))
    return copy
  }

  #step(count: number): number {
    const at = this.#at
    if (at + count > this.#bytes.length) throw new RangeError('A column ends before its end')
    this.#at = at + count
    return at
  }
}

/** Returns the two halves of an Int64, for {@link Longs.from}. */
export function halvesOf(value: bigint): { readonly hi: number; readonly lo: number } {
  return { hi: Number(value >> 32n), lo: Number(value & 0xffff_ffffn) }
}
