// What is answered to everybody, without an access token: which service this is, and where it stands. Nothing
// here tells of any organisation.

import { z } from 'zod'

export const FrontPage = z
  .object({
    name: z.literal('Lethe'),
    version: z.string(),
    docs: z
      .string()
      .optional()
      .describe('The reference of all operations, as a page; absent where it is elsewhere.'),
    openapi: z.string().optional().describe('The document behind it.'),
    health: z.string().describe('Whether the process answers.'),
    readiness: z.string().describe('Whether it is ready to serve.'),
  })
  .describe('What answers here, and where to go on: addresses on this host.')
  .meta({ id: 'FrontPage' })
export type FrontPage = z.infer<typeof FrontPage>

export const Health = z
  .object({
    status: z.enum(['ok', 'starting', 'disk_full', 'disk_failing']),
    detail: z.string().optional().describe('What is wrong, for a person; absent where nothing is.'),
  })
  .describe('Where the service stands.')
  .meta({ id: 'Health' })

export const Readiness = Health.extend({
  clock: z
    .enum(['ok', 'in_doubt'])
    .describe(
      'in_doubt: the clock jumped by more than a day, so retention, expiry of backups and delayed deletions are paused until the operator runs `lethe clock confirm`.',
    ),
}).meta({ id: 'Readiness' })
