// The priority of threads that compute. The event loop answers everybody, and on a machine with few cores it
// shares them with the threads that decode bodies and evaluate detectors. So those have a lower priority:
// where a core is free they run as before, and where none is the loop comes first.

import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { basename } from 'node:path'

/** Of Linux's nice values: a third of the weight of a thread with the usual value 0 (sched(7)). */
const backgroundNice = 5

/**
 * Lowers the priority of the calling thread for good. Linux has a priority per thread, under its thread id
 * (setpriority(2)); on other systems, and without /proc, nothing changes.
 */
export function lowerThreadPriority(): void {
  try {
    setPriority(Number(basename(readlinkSync('/proc/thread-self'))), backgroundNice)
  } catch {
    // The thread works as well with the usual priority.
  }
}
