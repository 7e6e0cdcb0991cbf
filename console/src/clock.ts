// The only module of the console that reads the time or waits, so that a test controls both with the clock of
// the page.

export function nowMs(): number {
  return Date.now()
}

/** Calls `work` once after `ms`; returns the function that prevents it. */
export function after(ms: number, work: () => void): () => void {
  const timer = setTimeout(work, ms)
  return () => clearTimeout(timer)
}
