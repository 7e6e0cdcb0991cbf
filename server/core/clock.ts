// The only module that reads wall time. Everything else receives a Clock, so that a test controls the time
// and a waiting loop runs without waiting. Instants of the control plane are milliseconds; instants of
// telemetry are nanoseconds and exact. Wall time is for people; it decides no order.

import { readFileSync } from 'node:fs'
import { uptime } from 'node:os'
import { newSecret } from './ids.ts'

/** A reading of a clock that can't be set: how long the machine has been running, including sleep. */
export interface SteadyTime {
  /** Identifies the start of the machine from which it counts; readings of two starts can't be compared. */
  readonly boot: string
  readonly ms: number
}

export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. Goes back where the operator corrects the machine's clock. */
  nowMs(): number
  /** The same instant in nanoseconds, at millisecond resolution. */
  nowNs(): bigint
  /**
   * Never goes back; wall time is checked against it. On Linux each call opens a file: too much for every
   * request.
   */
  steady(): SteadyTime
  /**
   * Milliseconds, with fractions, of a clock that never goes back and stops while the machine sleeps, to
   * measure how long something takes. Its start is unspecified.
   */
  elapsedMs(): number
  /** Resolves after `ms`, or at once where `signal` aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/**
 * Linux identifies each start of the machine. Elsewhere each process has an identity of its own, and earlier
 * readings can't be compared.
 */
function readBoot(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return newSecret()
  }
}

const boot = readBoot()

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  nowNs: () => BigInt(Date.now()) * 1_000_000n,
  steady: () => ({ boot, ms: Math.round(uptime() * 1000) }),
  elapsedMs,
  sleep(ms, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const done = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      signal?.addEventListener('abort', done, { once: true })
    })
  },
}

/** The same as {@link Clock.elapsedMs} of this machine, for what is never simulated. */
export function elapsedMs(): number {
  return performance.now()
}

/**
 * Formats an instant as RFC 3339 in UTC with milliseconds and `Z`: the form of all control-plane instants on
 * the wire and in storage.
 */
export function instantText(ms: number): string {
  return new Date(ms).toISOString()
}
