// How many bytes the rows of one request may take. A few kilobytes of a request can have rows of gigabytes,
// because every row has the attributes of its resource, and every sample of remote write those of its series.

import { AppError } from '../../core/app-error.ts'

/**
 * Bytes of encoded rows of one request. A resource is written into each of its rows, so the rows of a hostile
 * body of megabytes could have terabytes; real ones grow about threefold.
 */
const maxEncodedBytes = 128 * 1024 * 1024

/**
 * Where the limit of bodies is so large that real ones could reach the limit above, rows may have this many
 * times the size of the body instead.
 */
const maxGrowth = 8

/** The rows of a body take more bytes than its decoding may write here; elsewhere it can be decoded. */
export class ManyRowBytes extends Error {
  override name = 'ManyRowBytes'
}

export class RowBytes {
  readonly #fewMax: number
  readonly #max: number
  #rows = 0
  #copied = 0

  /** @param fewMax bytes above which ManyRowBytes is thrown; absent: none */
  constructor(fewMax: number | undefined, bodyBytes: number) {
    this.#fewMax = fewMax ?? Number.POSITIVE_INFINITY
    this.#max = Math.max(maxEncodedBytes, maxGrowth * bodyBytes)
  }

  /** Counts a row. Throws ManyRowBytes, or `body_too_large` where rows are out of proportion to the body. */
  addRow(bytes: number): void {
    this.#rows += bytes
    this.#require(this.#rows)
  }

  /**
   * Counts bytes that are copied for a record, whether its row is accepted or not: a request that repeats
   * long texts in rejected records would otherwise cost far more than its rows. Throws as {@link addRow}.
   */
  addCopied(bytes: number): void {
    this.#copied += bytes
    this.#require(this.#copied)
  }

  #require(bytes: number): void {
    if (bytes > this.#fewMax) throw new ManyRowBytes()
    if (bytes <= this.#max) return
    throw new AppError('body_too_large', {
      sentence: `The rows of this request take more than ${this.#max} bytes; send it in smaller parts.`,
    })
  }
}
