// What a test can do with a control plane on any database (control-planes.ts opens one).

import type { Control } from '../server/control/database.ts'

/** A migrated, empty control plane that only this test uses. */
export interface TestControl {
  readonly control: Control
  readonly shell: DatabaseShell
  /** Closes every handle and removes the files or the database. */
  close(): Promise<void>
}

/** A control plane that other processes use too, and whose bytes are in files. */
export interface SharedTestControl extends TestControl {
  /** Another handle, as another process has one. */
  another(): Control
  /** Sets how long a statement of the handle waits for the transaction of another handle, milliseconds. */
  waitAtMost(handle: Control, ms: number): Promise<void>
  /** Runs `work` while another process has the whole database locked. */
  whileLocked<T>(work: () => Promise<T>): Promise<T>
  /** Names of the files of the database that contain the text. */
  filesWith(text: string): string[]
}

/** Direct access to the database, without the protection of the service. */
export interface DatabaseShell {
  /** Makes rows of the chains changeable and removable. */
  dropChainGuards(): Promise<void>
  /** Makes columns accept any value. */
  dropValueChecks(): Promise<void>
  /**
   * Moves of the organisation's requests into these states fail, until the function that is returned is
   * called.
   */
  failMoves(tenantId: string, statuses: readonly string[]): Promise<() => Promise<void>>
  /**
   * Transactions that write a deletion request fail when they commit, until the function
   * that is returned is called.
   */
  failCommits(): Promise<() => Promise<void>>
}
