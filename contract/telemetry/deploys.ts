// Deploys of an organisation's services, on the wire. They are computed from telemetry on request: a version
// that a service had not shown before, or a log event that says so. Nothing of them is stored.

import { z } from 'zod'
import { cursorQuery, Instant, limitQuery, pageOf } from '../values/fields.ts'
import { longestName, rangeQuery } from './queries.ts'

export const Deploy = z
  .object({
    service: z.string(),
    environment: z
      .string()
      .nullable()
      .describe(
        '`deployment.environment.name` of its telemetry, at most 200 characters of it; null where it has none.',
      ),
    version: z
      .string()
      .nullable()
      .describe('`service.version`, at most 200 characters of it; null where an event has none.'),
    previous_version: z
      .string()
      .nullable()
      .describe('The version before; null where the telemetry of the hours before has none.'),
    at: Instant.describe('When the version was first seen, or the time of the event where that is earlier.'),
    told_by: z
      .enum(['version', 'event'])
      .describe(
        '`event`: from a log event named `deployment`; `version`: from the versions of the telemetry itself.',
      ),
  })
  .meta({ id: 'Deploy' })
export type Deploy = z.infer<typeof Deploy>

export const DeployQuery = z.strictObject({
  ...rangeQuery,
  limit: limitQuery,
  cursor: cursorQuery,
  service: z.string().max(longestName).optional(),
})

export const DeployPage = pageOf(Deploy)
  .extend({
    searched: z
      .object({ range_start: Instant, range_end: Instant })
      .describe(
        'The range whose deploys are listed; where the requested range has too much telemetry, a newer part of it.',
      ),
    warnings: z.array(z.string()).describe('What is not listed and why, as sentences for people.'),
  })
  .meta({ id: 'DeployPage' })
