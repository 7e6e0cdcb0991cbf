// Pages and probes for people who run the service. Public, because a probe has no token.

import { z } from 'zod'
import type { ErrorCode } from '../errors.ts'
import { frontPageExample, healthExample, notReadyExample, readyExample } from '../examples/pages.ts'
import { type Operation, operation } from '../operation.ts'
import { FrontPage, Health, Readiness } from '../pages.ts'

const IfNoneMatch = z.object({
  'if-none-match': z.string().optional().describe('The ETag of your copy; 304 where it is current.'),
})

/** A page for people, or a file of one. */
function pageFile(
  id: string,
  path: string,
  type: string,
  summary: string,
  refusals: readonly ErrorCode[] = [],
): Operation {
  return operation({
    id,
    method: 'GET',
    path,
    access: 'public',
    tag: 'Operations',
    summary,
    isHidden: true,
    results: { 200: { body: z.unknown(), types: [type] } },
    refusals,
  })
}

export const pageOperations = {
  front: operation<z.ZodType, z.ZodUndefined, z.ZodUndefined, z.ZodUndefined, typeof IfNoneMatch>({
    id: 'getFrontPage',
    method: 'GET',
    path: '/',
    access: 'public',
    tag: 'Operations',
    summary: 'The name of the service and the addresses of its pages',
    headers: IfNoneMatch,
    results: {
      200: {
        body: FrontPage,
        example: frontPageExample,
        headers: ['etag', 'vary', 'cache-control'],
      },
      302: {
        meaning: 'A client that prefers HTML is led to the console.',
        body: z.undefined(),
        headers: ['location', 'vary'],
      },
      304: { meaning: 'Your copy is current.', body: z.undefined(), headers: ['etag', 'vary'] },
    },
  }),
  health: operation({
    id: 'getHealth',
    method: 'GET',
    path: '/healthz',
    access: 'public',
    isUnmetered: true,
    tag: 'Operations',
    summary: 'Whether the process responds',
    results: { 200: { body: Health, example: healthExample } },
  }),
  readiness: operation({
    id: 'getReadiness',
    method: 'GET',
    path: '/readyz',
    access: 'public',
    isUnmetered: true,
    tag: 'Operations',
    summary:
      'Whether the service is ready: everything that was erased or hidden before the start is so again, the disk accepts writes, and the control-plane database answers',
    results: {
      200: { body: Readiness, example: readyExample },
      503: { body: Readiness, headers: ['retry-after'], example: notReadyExample },
    },
  }),
  consoleStart: pageFile('getConsole', '/console', 'text/html', 'The console, for people in a browser'),
  consolePage: pageFile('getConsolePage', '/console/*', 'text/html', 'Each address of the console', [
    'not_found',
  ]),
  consoleFile: pageFile(
    'getConsoleFile',
    '/console/assets/:file',
    'text/javascript',
    'A file of the console',
    ['not_found'],
  ),
  metrics: pageFile('getMetrics', '/metrics', 'text/plain', 'Metrics of the service, for Prometheus'),
  openapi: pageFile('getOpenApi', '/openapi.json', 'application/json', 'This document'),
  docs: pageFile('getDocs', '/docs', 'text/html', 'The reference of all operations as a page'),
  docsWithSlash: pageFile('getDocsWithSlash', '/docs/', 'text/html', 'The same page'),
  docsLibrary: pageFile('getDocsLibrary', '/docs/scalar.js', 'text/javascript', 'A script of the page'),
  docsStart: pageFile('getDocsStart', '/docs/start.js', 'text/javascript', 'A script of the page'),
} as const
