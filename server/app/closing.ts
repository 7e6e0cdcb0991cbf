// Closes what was opened: once, in order, and also where the opening failed half-way. Nothing stays open
// after an error, because it would keep the folder locked and the process running.

/** The first call runs the work; every other call waits for the same. */
export function onlyOnce<T>(work: () => Promise<T>): () => Promise<T> {
  let done: Promise<T> | undefined
  return () => {
    done ??= work()
    return done
  }
}

/** Where opening fails, nothing else would close what was opened before, and the process could not end. */
export async function orClose<T>(close: () => Promise<void>, open: () => Promise<T>): Promise<T> {
  try {
    return await open()
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * Runs each in order, also after one that failed: what stays open would keep the folder locked. Throws the
 * first error at the end.
 */
export async function inTurn(works: readonly (() => Promise<unknown>)[]): Promise<void> {
  const errors: unknown[] = []
  for (const work of works) await work().catch((error: unknown) => errors.push(error))
  if (errors.length > 0) throw errors[0]
}
