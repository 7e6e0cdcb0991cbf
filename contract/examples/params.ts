// Examples of the parameters in paths, by name: the ids of the other examples.

import {
  anomalyId,
  changeId,
  collectorTokenId,
  detectorId,
  holdId,
  incidentId,
  muteId,
  requestId,
  traceId,
} from './acme.ts'

export const pathExamples: Readonly<Record<string, string>> = {
  anomaly_id: anomalyId,
  change_id: changeId,
  detector_id: detectorId,
  hold_id: holdId,
  incident_id: incidentId,
  mute_id: muteId,
  request_id: requestId,
  token_id: collectorTokenId,
  trace_id: traceId,
}
