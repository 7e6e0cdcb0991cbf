// The identity of this service, for three uses. One secret in the data folder is the source of all three, as
// long as one process with one folder is the whole service; processes that share a control plane will have a
// lease holder each, and share a journal seal and a certificate issuer. Each use gets its own value, and none
// gets the secret.

import { createHash } from 'node:crypto'

interface Instance {
  /**
   * Names this process where it takes leases. It is the same at the next start: the folder belongs to one
   * process at a time, so a process that finds its own name on a lease succeeds one that has ended, and need
   * not wait for the lease to expire.
   */
  readonly leaseHolder: string
  /**
   * Key of the seals in the erasure journal. Secret: with it one could write a journal that passes the check.
   */
  readonly journalSeal: string
  /** Names the service in certificates: SHA-256, hexadecimal. The same in all certificates of the service. */
  readonly certificateIssuer: string
}

/**
 * Returns the three names of the service whose data folder has this secret. Existing journals and
 * certificates were made with the same seal and issuer, so their derivation may never change.
 */
export function instanceOf(folderSecret: string): Instance {
  return {
    leaseHolder: `folder:${sha256(`lethe lease holder ${folderSecret}`).slice(0, 32)}`,
    journalSeal: folderSecret,
    certificateIssuer: sha256(`lethe instance ${folderSecret}`),
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex')
}
