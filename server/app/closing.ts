// How what was opened is closed: once, in turn, and also where the opening failed half-way. Nothing stays
// open behind an error, because it would keep the folder and the process.

/** The first call does it, and every other one waits for the same. */
export function onlyOnce<T>(work: () => Promise<T>): () => Promise<T> {
  let done: Promise<T> | undefined
  return () => {
    done ??= work()
    return done
  }
}

/** Nobody else would close what was opened by then, and it would keep the process from ending. */
export async function orClose<T>(close: () => Promise<void>, open: () => Promise<T>): Promise<T> {
  try {
    return await open()
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * Each in its turn, also after one that failed: what is left open would keep the folder. Throws
 * the first error at the end.
 */
export async function inTurn(works: readonly (() => Promise<unknown>)[]): Promise<void> {
  const errors: unknown[] = []
  for (const work of works) await work().catch((error: unknown) => errors.push(error))
  if (errors.length > 0) throw errors[0]
}
