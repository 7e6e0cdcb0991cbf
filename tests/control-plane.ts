// What a test may ask of a control plane, whatever its database is (control-planes.ts opens one).

import type { Control } from '../server/control/database.ts'

/** A migrated, empty control plane that only this test uses. */
export interface TestControl {
  readonly control: Control
  readonly shell: DatabaseShell
  /** Closes every handle and removes what lies on the disk. */
  close(): Promise<void>
}

/** One that other processes use too, and whose bytes lie in files. */
export interface SharedTestControl extends TestControl {
  /** A handle such as another process has. */
  another(): Control
  /**
   * From now on a statement through the handle waits so long for the transaction of another, milliseconds.
   */
  waitAtMost(handle: Control, ms: number): Promise<void>
  /** Runs `work` while another process has the whole database locked. */
  whileLocked<T>(work: () => Promise<T>): Promise<T>
  /** Names of the files of the database that hold the text. */
  filesWith(text: string): string[]
}

/** What somebody does who has the database itself, past everything that guards it. */
export interface DatabaseShell {
  /** Rows of the chains can be changed and removed. */
  dropChainGuards(): Promise<void>
  /** Columns take any value. */
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
