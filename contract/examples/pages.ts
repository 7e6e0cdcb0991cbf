// Examples of responses to everybody.

import type { z } from 'zod'
import type { FrontPage, Health, Readiness } from '../pages.ts'

export const frontPageExample: FrontPage = {
  name: 'Lethe',
  version: '0.1.0',
  console: '/console',
  docs: '/docs',
  openapi: '/openapi.json',
  health: '/healthz',
  readiness: '/readyz',
}

export const healthExample: z.output<typeof Health> = { status: 'ok' }

export const readyExample: z.output<typeof Readiness> = { status: 'ok', clock: 'ok' }

export const notReadyExample: z.output<typeof Readiness> = { status: 'starting', clock: 'ok' }
