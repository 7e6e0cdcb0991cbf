// The tables of the control plane from which an erasure removes rows or values, because they come from
// telemetry. After an erasure the files of the database must not have them.

/** `detectors` have what their last run said. */
export const derivedTables: readonly string[] = ['anomalies', 'held_anomaly_versions', 'detectors']

/** The name of a copy that takes the place of a table, where the database rewrites it so. */
export function copyNameOf(table: string): string {
  return `rewritten_${table}`
}

/** Copies that a crash may have left; the next flush removes them. */
export const derivedCopies: readonly string[] = derivedTables.map(copyNameOf)
