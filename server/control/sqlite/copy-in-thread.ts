// Copies the file of a control plane as of one moment, while it is read and written: in the write-ahead mode
// of SQLite a reader has a snapshot (https://www.sqlite.org/isolation.html).

import { Worker } from 'node:worker_threads'
import { storageRefusal } from '../../core/app-error.ts'
import { storageFaultOf } from '../../core/storage-fault.ts'
import type { CopyOrder } from './copy-thread.ts'

/**
 * Writes what is stored in the file `from` into the file `to`, which must not exist, without what was
 * deleted. The event loop goes on meanwhile. While the copy reads, the write-ahead log can't be emptied.
 */
export function copyInThread(order: CopyOrder): Promise<void> {
  const worker = new Worker(new URL('./copy-thread.ts', import.meta.url), { workerData: order })
  return new Promise((resolve, reject) => {
    worker.on('error', (cause) => {
      const fault = storageFaultOf(cause)
      reject(fault === null ? cause : storageRefusal(fault, cause))
    })
    worker.on('exit', (code) => {
      if (code === 0) resolve()
      else reject(new Error(`The thread that copies the control plane ended with ${code}.`))
    })
  })
}
