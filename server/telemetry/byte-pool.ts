// A pool of memory for bytes that are needed during one HTTP request or until their commit. Memory is reused,
// because allocating it each time makes the garbage collector run for memory outside its heap.
// It is filled with zeros between two users, because nothing of one organisation may remain after its erasure
// or be seen by another. The caller that gives memory back must be its last user. Memory that is never given
// back is collected as garbage.

/** Smaller buffers are cheap to allocate. */
const smallestBytes = 16 * 1024

/** Larger buffers are rare. */
const largestBytes = 16 * 1024 * 1024

export class BytePool {
  readonly #keptBytes: number
  readonly #kept = new Map<number, ArrayBuffer[]>()
  /**
   * Contains the buffers that were lent, not their memory: that may be lent to another caller in the
   * meantime.
   */
  readonly #lent = new WeakSet<Buffer>()
  #idleBytes = 0

  /** @param keptBytes the most bytes that are kept while unused */
  constructor(keptBytes: number) {
    this.#keptBytes = keptBytes
  }

  /** Bytes that are kept and unused. */
  get idleBytes(): number {
    return this.#idleBytes
  }

  /** Returns a buffer of `count` bytes. Its content is undefined; no other caller has it. */
  lend(count: number): Buffer {
    if (count < smallestBytes || count > largestBytes) return Buffer.allocUnsafeSlow(count)
    const size = sizeFor(count)
    const kept = this.#kept.get(size)?.pop()
    if (kept !== undefined) this.#idleBytes -= size
    const memory = kept ?? Buffer.allocUnsafeSlow(size).buffer
    const bytes = Buffer.from(memory, 0, count)
    this.#lent.add(bytes)
    return bytes
  }

  /**
   * Takes back the buffer that {@link lend} returned. Ignores buffers from elsewhere, and those that were
   * given back before.
   */
  giveBack(bytes: Buffer): void {
    const { buffer } = bytes
    if (!this.#lent.delete(bytes) || !(buffer instanceof ArrayBuffer)) return
    const size = buffer.byteLength
    if (this.#idleBytes + size > this.#keptBytes) return
    bytes.fill(0)
    this.#idleBytes += size
    const others = this.#kept.get(size)
    if (others === undefined) this.#kept.set(size, [buffer])
    else others.push(buffer)
  }
}

/**
 * Returns the next multiple of a quarter of the power of two below `count`, so that at most a fifth is
 * unused.
 */
function sizeFor(count: number): number {
  const step = 2 ** (Math.floor(Math.log2(count)) - 2)
  return Math.ceil(count / step) * step
}
