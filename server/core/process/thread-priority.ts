// The priority of threads that compute. The event loop serves everybody, and on a machine with few cores it
// shares them with the threads that decode bodies, evaluate detectors and run statements. So those have a
// lower priority: where a core is free they run as before, and where none is free the loop runs first.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'
import { basename } from 'node:path'

/**
 * Steps of Linux's nice value (sched(7)). Five steps more leave a third of the weight: a statement has a
 * third of the weight of the event loop, deferred work such as detection a third of that, and work that
 * gives way to all other work again a third.
 */
const stepsOf = { computing: 5, deferred: 10, yielding: 15 } as const
const mostNice = 19

/** Returns the nice value of threads that compute. */
export const computingNice = (): number => lower(stepsOf.computing)

/** Returns the nice value of the event loop. */
export const loopNice = (): number => getPriority()

/** Returns the nice value of threads whose work gives way to that of the others. */
export const yieldingNice = (): number => lower(stepsOf.yielding)

/** The bit of CAP_SYS_NICE in a set of capabilities (capabilities(7)). */
const sysNice = 1n << 23n

/**
 * Whether the process may raise a priority again that it has lowered. The engine gives a statement a priority
 * of its own only then.
 */
export function mayRaisePriority(): boolean {
  try {
    const [, effective = '0'] = /^CapEff:\s*(\w+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
    return (BigInt(`0x${effective}`) & sysNice) !== 0n
  } catch {
    return false
  }
}

/** @param threadId 0 for the process */
const lower = (steps: number, threadId = 0): number => Math.min(mostNice, getPriority(threadId) + steps)

/**
 * Lowers the priority of the calling thread for good. Linux has a priority per thread, under its thread id
 * (setpriority(2)); on other systems, and without /proc, nothing changes.
 */
export function lowerThreadPriority(work: 'computing' | 'deferred'): void {
  try {
    const threadId = Number(basename(readlinkSync('/proc/thread-self')))
    setPriority(threadId, lower(stepsOf[work], threadId))
  } catch {
    // The thread also works with the usual priority.
  }
}

/**
 * Lowers the priority of all threads of the process with none of these names, once: to a third of the weight
 * of the main thread. Threads that they start later inherit it.
 */
export function lowerOtherThreads(kept: ReadonlySet<string>): void {
  const nice = computingNice()
  for (const { threadId, name } of threads()) {
    if (threadId === process.pid || kept.has(name)) continue
    try {
      if (getPriority(threadId) < nice) setPriority(threadId, nice)
    } catch {
      // It has just ended.
    }
  }
}

function threads(): { readonly threadId: number; readonly name: string }[] {
  try {
    return readdirSync('/proc/self/task').map((id) => ({
      threadId: Number(id),
      name: readFileSync(`/proc/self/task/${id}/comm`, 'utf8').trim(),
    }))
  } catch {
    return []
  }
}
