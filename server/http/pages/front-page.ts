// The root address: which service this is and where to continue, for a person who opened the address from the
// log, and for a program. Public, so it contains only what the reference contains, and nothing about any
// organisation.

import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { pageOperations } from '../../../contract/operations/pages.ts'
import type { FrontPage } from '../../../contract/pages.ts'
import { routeOf } from '../serve.ts'
import { prefersHtml } from './prefers-html.ts'
import { StaticAnswer } from './static-answer.ts'

const style = `
body { max-width: 38rem; margin: 15vh auto; padding: 0 1.5rem; color: #1a1a1a; font: 1.05rem/1.6 system-ui, sans-serif; }
h1 { margin: 0; font: 400 2.6rem/1.2 Georgia, serif; }
a { color: inherit; }
small { color: #5a564e; }
`

/** The page may load, run, frame and send nothing; it has only its own styles. */
const headers = {
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  vary: 'accept',
} as const

/** @param hasDocs whether the reference is at this address */
export function addFrontPage(http: FastifyInstance, version: string, hasDocs: boolean): void {
  const page: FrontPage = {
    name: 'Lethe',
    version,
    ...(hasDocs && { docs: '/docs', openapi: '/openapi.json' }),
    health: '/healthz',
    readiness: '/readyz',
  }
  const asJson = new StaticAnswer({
    type: 'application/json; charset=utf-8',
    make: () => JSON.stringify(page),
    headers,
  })
  const asHtml = new StaticAnswer({ type: 'text/html; charset=utf-8', make: () => htmlOf(page), headers })
  http.route({
    ...routeOf(pageOperations.front),
    handler: async (request, reply) =>
      (prefersHtml(request.headers.accept) ? asHtml : asJson).send(request, reply),
  })
}

/** The parts of the page are ours and contain no characters with a meaning in HTML. */
function htmlOf({ docs, health, name, openapi, readiness, version }: FrontPage): string {
  const links =
    docs === undefined
      ? ''
      : `<li><a href="${docs}">Reference of all operations</a></li>
<li><a href="${openapi}">OpenAPI document</a></li>
`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${name}</title>
<style>${style}</style>
</head>
<body>
<h1>${name}</h1>
<p>Multi-tenant telemetry that can forget. This is its HTTP interface; you need an access token to use it.</p>
<ul>
${links}<li><a href="${health}">Health</a>, <a href="${readiness}">readiness</a></li>
</ul>
<p><small>Version ${version}</small></p>
</body>
</html>
`
}
