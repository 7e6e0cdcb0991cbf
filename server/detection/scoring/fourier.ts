// The discrete Fourier transform of a fixed power-of-two size, in place: iterative radix 2 (Cooley and
// Tukey 1965) with its roots of unity computed once. Calling it with the two arrays exchanged gives the
// inverse, times the size.

import { at } from './series.ts'

export class Fourier {
  readonly #size: number
  readonly #cosines: Float64Array
  readonly #sines: Float64Array
  readonly #reversed: Uint32Array

  /** `size`: a power of two, 2 or more. */
  constructor(size: number) {
    this.#size = size
    const angles = Float64Array.from({ length: size / 2 }, (_, i) => (-2 * Math.PI * i) / size)
    this.#cosines = angles.map(Math.cos)
    this.#sines = angles.map(Math.sin)
    this.#reversed = new Uint32Array(size)
    for (let i = 1; i < size; i++) {
      this.#reversed[i] = ((this.#reversed[i >> 1] ?? 0) >> 1) | (i & 1 ? size >> 1 : 0)
    }
  }

  transform(real: Float64Array, imaginary: Float64Array): void {
    this.#shuffle(real)
    this.#shuffle(imaginary)
    for (let half = 1; half < this.#size; half *= 2) {
      const stride = this.#size / half / 2
      for (let start = 0; start < this.#size; start += 2 * half) {
        for (let j = 0; j < half; j++) {
          const cosine = at(this.#cosines, j * stride)
          const sine = at(this.#sines, j * stride)
          const low = start + j
          const high = low + half
          const turnedReal = at(real, high) * cosine - at(imaginary, high) * sine
          const turnedImaginary = at(real, high) * sine + at(imaginary, high) * cosine
          real[high] = at(real, low) - turnedReal
          imaginary[high] = at(imaginary, low) - turnedImaginary
          real[low] = at(real, low) + turnedReal
          imaginary[low] = at(imaginary, low) + turnedImaginary
        }
      }
    }
  }

  #shuffle(values: Float64Array): void {
    for (let i = 0; i < this.#size; i++) {
      const j = this.#reversed[i] ?? 0
      if (j <= i) continue
      const kept = at(values, i)
      values[i] = at(values, j)
      values[j] = kept
    }
  }
}
