// Counts turns of the event loop, for tests that long work gives way to other work.

/** Calls `work`. Returns its result, and how often other work of the event loop ran meanwhile. */
export async function withTurns<T>(work: () => Promise<T>): Promise<{ result: T; turns: number }> {
  let turns = 0
  const immediate = () => {
    turns++
    next = setImmediate(immediate)
  }
  let next = setImmediate(immediate)
  try {
    const result = await work()
    return { result, turns }
  } finally {
    clearImmediate(next)
  }
}
