// Every operation of the HTTP interface: what the OpenAPI document describes and what a service serves.

import type { Operation } from '../operation.ts'
import { anomalyOperations } from './anomalies.ts'
import { auditOperations } from './audit.ts'
import { deletionOperations } from './deletions.ts'
import { detectorOperations } from './detectors.ts'
import { holdOperations, policyOperations, retentionOperations } from './governance.ts'
import { incidentOperations } from './incidents.ts'
import { ingestOperations } from './ingest.ts'
import { pageOperations } from './pages.ts'
import { sessionOperations } from './sessions.ts'
import { telemetryOperations } from './telemetry.ts'
import { tenancyOperations } from './tenancy.ts'
import { usageOperations } from './usage.ts'

export const everyOperation: readonly Operation[] = [
  pageOperations,
  tenancyOperations,
  sessionOperations,
  auditOperations,
  usageOperations,
  deletionOperations,
  policyOperations,
  holdOperations,
  retentionOperations,
  telemetryOperations,
  anomalyOperations,
  incidentOperations,
  detectorOperations,
  ingestOperations,
].flatMap((group) => Object.values<Operation>(group))
