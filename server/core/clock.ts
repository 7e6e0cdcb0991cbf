// The only place where wall time enters the program. Everything else receives a Clock, so that a test decides
// what time it is and a waiting loop can be driven without waiting. Instants of the control plane are
// milliseconds; telemetry instants are nanoseconds and exact. People read wall time; it decides no order.

import { readFileSync } from 'node:fs'
import { uptime } from 'node:os'
import { newSecret } from './ids.ts'

/** A reading of a clock that nobody sets: how long the machine has been on, time asleep included. */
export interface SteadyTime {
  /** Which start of the machine it counts from; readings of two starts have no distance. */
  readonly boot: string
  readonly ms: number
}

export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. May step backwards when the operator corrects the machine. */
  nowMs(): number
  /** The same instant in nanoseconds, at millisecond resolution. */
  nowNs(): bigint
  /** Never steps; what wall time is checked against. */
  steady(): SteadyTime
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/**
 * Linux names each start of the machine. Elsewhere each process has its own, and nothing is
 * known of what was before.
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

/**
 * Milliseconds, with fractions, of a clock that never steps: for how long something took.
 * It has no known beginning.
 */
export function elapsedMs(): number {
  return performance.now()
}

/**
 * RFC 3339 in UTC with milliseconds and `Z`: the form of every control-plane instant on the wire and at rest.
 */
export function instantText(ms: number): string {
  return new Date(ms).toISOString()
}
