// The tables of the control plane from which an erasure removes rows or values, because they come from
// telemetry. After an erasure the files of the database must not have them.

/** `detectors` have what their last run said. */
export const derivedTables: readonly string[] = ['anomalies', 'held_anomaly_versions', 'detectors']
