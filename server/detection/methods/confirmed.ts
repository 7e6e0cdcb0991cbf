// Which episodes people confirmed. The alarm budget is for false alarms, so what a person called real does
// not count against the alarms after it. A confirmed episode is known by its start, which its anomaly keeps.
// A run that starts from the beginning may find the same episode a few buckets later or earlier, hence the
// tolerance.

/** Starts of confirmed episodes of a series, in minutes since 1970. */
export type ConfirmedStarts = readonly number[]

const toleranceMinutes = 60
const toleranceBuckets = 3

/** Whether an episode is confirmed that began at `openedMinute` and was last seen at `lastMinute`. */
export function isConfirmed(
  starts: ConfirmedStarts,
  { lastMinute, openedMinute, stepMinutes }: Record<'openedMinute' | 'lastMinute' | 'stepMinutes', number>,
): boolean {
  const tolerance = Math.max(toleranceMinutes, toleranceBuckets * stepMinutes)
  return starts.some((start) => start > openedMinute - tolerance && start < lastMinute + stepMinutes)
}
