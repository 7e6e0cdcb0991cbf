// Who this service is, to three that ask. One secret in the data folder answers all of them, as long as one
// process with one folder is the whole service; processes that share a control plane will have a lease holder
// each, and one journal seal and one certificate issuer together. Whoever needs one of the three is given
// that one, and none the secret.

import { createHash } from 'node:crypto'

interface Instance {
  /**
   * Names this process where it takes leases. It is the same at the next start: the folder belongs to one
   * process at a time, so a process that finds its own name on a lease follows one that died, and need not
   * wait for the lease to run out.
   */
  readonly leaseHolder: string
  /** Key of the seals in the erasure journal. A secret: who knows it can write a journal that passes. */
  readonly journalSeal: string
  /**
   * Names the service in certificates: SHA-256, hexadecimal. The same in every
   * certificate that it ever issues.
   */
  readonly certificateIssuer: string
}

/**
 * The three names of the service whose data folder has this secret. Journals and certificates that exist were
 * made with the same seal and issuer, so neither may ever be derived in another way.
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
