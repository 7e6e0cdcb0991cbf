// Unsigned 64-bit integers as two 32-bit halves: OTLP has several in each record, and a BigInt for each would
// be an allocation and a slow division. All arithmetic stays within the integers that a double represents
// exactly.

const twoTo32 = 4_294_967_296
const maxUint64 = 18_446_744_073_709_551_615n

/** A mutable 64-bit integer that a decoder reuses for each record. */
export class Uint64 {
  /** Upper half, 0 to 2^32 - 1. */
  hi = 0
  /** Lower half, 0 to 2^32 - 1. */
  lo = 0

  clear(): void {
    this.hi = 0
    this.lo = 0
  }

  copy(other: Uint64): void {
    this.hi = other.hi
    this.lo = other.lo
  }

  isZero(): boolean {
    return this.hi === 0 && this.lo === 0
  }

  /** Sets it to `a - b`, or to 0 where `b` is larger. */
  setDifference(a: Uint64, b: Uint64): void {
    if (a.isBelow(b)) {
      this.clear()
      return
    }
    const borrowed = a.lo < b.lo ? 1 : 0
    this.hi = a.hi - b.hi - borrowed
    this.lo = a.lo - b.lo + borrowed * twoTo32
  }

  isBelow(other: Uint64): boolean {
    return this.hi < other.hi || (this.hi === other.hi && this.lo < other.lo)
  }

  toBigInt(): bigint {
    return (BigInt(this.hi) << 32n) | BigInt(this.lo)
  }

  /** @param value from 0 to 2^64 - 1; the caller must ensure it */
  setBigInt(value: bigint): void {
    this.hi = Number(value >> 32n)
    this.lo = Number(value & 0xffff_ffffn)
  }

  /** @param value an integer from 0 to 2^53 - 1 */
  setSafeInteger(value: number): void {
    this.hi = Math.floor(value / twoTo32)
    this.lo = value % twoTo32
  }

  /**
   * Reads decimal digits. Returns false and changes nothing where the text is not an integer from 0 to 2^64 -
   * 1.
   */
  setDecimal(text: string): boolean {
    if (!/^\d{1,20}$/.test(text)) return false
    if (text.length > 15) return this.#setLongDecimal(text)
    this.setSafeInteger(Number(text))
    return true
  }

  /** Decimal digits, exact. */
  toString(): string {
    return this.hi < 2_097_152 ? String(this.hi * twoTo32 + this.lo) : String(this.toBigInt())
  }

  #setLongDecimal(text: string): boolean {
    const value = BigInt(text)
    if (value > maxUint64) return false
    this.setBigInt(value)
    return true
  }
}
