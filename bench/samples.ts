// Computes figures from single measurements.

interface Timed<T> {
  readonly value: T
  readonly ms: number
  /** CPU of the whole process in seconds, including threads of the embedded engine. */
  readonly cpuS: number
}

/** Runs `work` and returns its wall time and the CPU time of this process. */
export async function timed<T>(work: () => Promise<T>): Promise<Timed<T>> {
  const cpu = process.cpuUsage()
  const start = performance.now()
  const value = await work()
  const used = process.cpuUsage(cpu)
  return { value, ms: performance.now() - start, cpuS: (used.user + used.system) / 1e6 }
}

/** Returns the value at fraction `q` of the sorted samples; NaN without samples. */
export function quantile(samples: readonly number[], q: number): number {
  const sorted = [...samples].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN
}

export function rounded(value: number, digits = 2): number {
  return Number(value.toFixed(digits))
}

/** Returns the number in a program's version text; the whole text where there is none. */
export function shortVersion(text: string): string {
  return /\d+\.[\w.]+/.exec(text)?.[0] ?? text
}
