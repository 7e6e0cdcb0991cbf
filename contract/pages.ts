// Responses to everybody, without an access token: the name of the service, and its state. They say nothing
// about any organisation.

import { z } from 'zod'

export const FrontPage = z
  .object({
    name: z.literal('Lethe'),
    version: z.string(),
    console: z.string().describe('The console, for a browser.'),
    docs: z
      .string()
      .optional()
      .describe('The reference of all operations, as a page; absent where it is not served here.'),
    openapi: z.string().optional().describe('The OpenAPI document.'),
    health: z.string().describe('Whether the process responds.'),
    readiness: z.string().describe('Whether it is ready to serve.'),
  })
  .describe('The name of the service, and addresses on this host.')
  .meta({ id: 'FrontPage' })
export type FrontPage = z.infer<typeof FrontPage>

export const Health = z
  .object({
    status: z.enum(['ok', 'starting', 'disk_full', 'disk_failing', 'control_unavailable']),
    detail: z
      .string()
      .optional()
      .describe('What is wrong, as text for people; absent where nothing is wrong.'),
  })
  .describe('The state of the service.')
  .meta({ id: 'Health' })

export const Readiness = Health.extend({
  clock: z
    .enum(['ok', 'in_doubt'])
    .describe(
      'in_doubt: the clock jumped by more than a day, so retention, expiry of backups and delayed deletions are paused until the operator runs `lethe clock confirm`.',
    ),
}).meta({ id: 'Readiness' })
