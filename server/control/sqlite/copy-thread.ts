// The thread that copies a control plane into another file: the driver blocks its thread, and the file may
// have gigabytes. It has a connection of its own and changes nothing of the original.

import { DatabaseSync } from 'node:sqlite'
import { workerData } from 'node:worker_threads'
import { lowerThreadPriority } from '../../core/process/thread-priority.ts'

/** What the thread is given. */
export interface CopyOrder {
  readonly from: string
  readonly to: string
  readonly busyTimeoutMs: number
}

const { busyTimeoutMs, from, to } = workerData as CopyOrder

// Erasures wait for the end of a backup, so it is not deferred work.
lowerThreadPriority('computing')
const database = new DatabaseSync(from, { readOnly: true, timeout: busyTimeoutMs })
try {
  database.prepare('vacuum into ?').run(to)
} finally {
  database.close()
}
