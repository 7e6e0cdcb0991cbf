// Memory for bytes that live from one request to the next or to their commit, used again: to ask for it anew
// each time makes the garbage collector run for memory that it doesn't own. It is wiped between two users,
// because nothing of one organisation may outlast its erasure or be seen by another, and who gives it back
// must be the last to hold it. What is never given back is garbage like anything else.

/** Less than this is cheap to ask for. */
const smallestBytes = 16 * 1024

/** More than this is rare. */
const largestBytes = 4 * 1024 * 1024

export class BytePool {
  readonly #keptBytes: number
  readonly #kept = new Map<number, ArrayBuffer[]>()
  /** By what was answered and not by its memory, which may be lent to somebody else since. */
  readonly #lent = new WeakSet<Buffer>()
  #idleBytes = 0

  /** @param keptBytes bound on what is kept while nobody uses it */
  constructor(keptBytes: number) {
    this.#keptBytes = keptBytes
  }

  /** Bytes that nobody uses. */
  get idleBytes(): number {
    return this.#idleBytes
  }

  /** So many bytes, of which nothing is known but that they are nobody else's. */
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
   * Takes back the very buffer that {@link lend} answered; what came from elsewhere, or was given
   * back before, is left alone.
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

/** The next multiple of a quarter of the power of two below, so that a fifth at most is left over. */
function sizeFor(count: number): number {
  const step = 2 ** (Math.floor(Math.log2(count)) - 2)
  return Math.ceil(count / step) * step
}
