// Reads ClickHouse's RowBinary: the other direction of `row-binary.ts`, for what the engine answers. Whoever reads
// keeps the order and the types of the columns; a text or list that says it is longer than the bytes are is refused.

const two32 = 4_294_967_296

export class RowBinaryReader {
  readonly #bytes: Buffer
  readonly #view: DataView
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /** Whether all has been read. */
  get isDone(): boolean {
    return this.#at >= this.#bytes.length
  }

  uint8(): number {
    return this.#view.getUint8(this.#step(1))
  }

  int32(): number {
    return this.#view.getInt32(this.#step(4), true)
  }

  /** Exact below 2^53. */
  uint64(): number {
    const at = this.#step(8)
    return this.#view.getUint32(at + 4, true) * two32 + this.#view.getUint32(at, true)
  }

  /** How far an Int64 lies above `origin`; exact where that is below 2^53. */
  int64From(origin: { readonly hi: number; readonly lo: number }): number {
    const at = this.#step(8)
    const hi = this.#view.getInt32(at + 4, true) - origin.hi
    return hi * two32 + (this.#view.getUint32(at, true) - origin.lo)
  }

  float64(): number {
    return this.#view.getFloat64(this.#step(8), true)
  }

  text(): string {
    const length = this.#varint()
    const at = this.#step(length)
    return length === 0 ? '' : this.#bytes.toString('utf8', at, at + length)
  }

  skipText(): void {
    this.#step(this.#varint())
  }

  float64s(): number[] {
    const length = this.#listLength()
    const list = new Array<number>(length)
    for (let i = 0; i < length; i++) list[i] = this.float64()
    return list
  }

  uint64s(): number[] {
    const length = this.#listLength()
    const list = new Array<number>(length)
    for (let i = 0; i < length; i++) list[i] = this.uint64()
    return list
  }

  /** Of a list of eight bytes each. */
  #listLength(): number {
    const length = this.#varint()
    if (length * 8 > this.#bytes.length - this.#at) throw new RangeError('A list ends before its end')
    return length
  }

  #varint(): number {
    let [value, factor] = [0, 1]
    for (;;) {
      const byte = this.uint8()
      value += (byte & 127) * factor
      if (byte < 128) return value
      factor *= 128
    }
  }

  #step(count: number): number {
    const at = this.#at
    if (at + count > this.#bytes.length) throw new RangeError('A row ends before its end')
    this.#at = at + count
    return at
  }
}

/** The two halves of an Int64, for {@link RowBinaryReader.int64From}. */
export function halvesOf(value: bigint): { readonly hi: number; readonly lo: number } {
  return { hi: Number(value >> 32n), lo: Number(value & 0xffff_ffffn) }
}
