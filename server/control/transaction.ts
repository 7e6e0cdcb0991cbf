// Runs the transactions of the control plane. Where the database has ended a transaction in favour of another
// one, the whole function runs again: so a function that is passed here has no effect but its statements, or
// one that ends with the transaction. `tests/tidy.test.ts` checks that transactions begin only here.

import { AppError } from '../core/app-error.ts'
import type { Control, ControlTransaction } from './database.ts'
import { dialectOf } from './dialect.ts'

/** More than one retry is rare: the preferred transaction has ended by then. */
const triesMax = 5

/**
 * Runs `work` in a transaction, and again where the database ended it in favour of another one. Throws what
 * `work` throws, after which nothing is stored; `overloaded` where no try succeeded; `outcome_unknown` where
 * the database did not answer the commit.
 */
export function transact<T>(control: Control, work: (trx: ControlTransaction) => Promise<T>): Promise<T> {
  return tryAgain(control, () => transactOnce(control, work))
}

/**
 * One try of a transaction, for a caller that has to undo something before the next; see {@link tryAgain}.
 */
export function transactOnce<T>(control: Control, work: (trx: ControlTransaction) => Promise<T>): Promise<T> {
  return control.transaction().execute(work)
}

/** Calls `once`, which runs one transaction, until the database does not end it in favour of another one. */
export async function tryAgain<T>(control: Control, once: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await once()
    } catch (error) {
      if (!dialectOf(control).isPreempted(error)) throw error
      if (tries < triesMax) continue
      throw new AppError('overloaded', {
        sentence: 'Other changes kept this one from being stored; repeat after Retry-After.',
        retryAfterSeconds: 1,
        cause: error,
      })
    }
  }
}
