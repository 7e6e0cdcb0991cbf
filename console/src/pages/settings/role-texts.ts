// What each role may do, in one line.

import type { Role } from '../../../../contract/role.ts'

export const roleTexts: Readonly<Record<Role, string>> = {
  owner: 'everything, also the approval rule and the end of the organisation',
  admin: 'erases, approves, reads evidence, makes tokens, but none of an owner',
  member: 'sends and reads telemetry, changes detectors',
  viewer: 'reads telemetry and anomalies',
  ingest: 'only sends telemetry: for collectors and programs',
}
