// The reference of all operations as a page at /docs, and its document at /openapi.json. People paste access
// tokens into this page, so it loads nothing from elsewhere, connects only to this service, and runs only
// scripts that are files of this service: no script in the page, and no text that becomes one.

import { randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { pageOperations } from '../../../contract/operations/pages.ts'
import { routeOf } from '../serve.ts'
import { StaticAnswer } from './static-answer.ts'

interface ReferencePageOptions {
  readonly document: StaticAnswer
  /** Whether the operations are served at the address of this page, so that it can offer to try them. */
  readonly canTry: boolean
}

/** Adds the page, its two scripts and the document to a listener. */
export function addReferencePage(http: FastifyInstance, { document, canTry }: ReferencePageOptions): void {
  const start = script(() => startScript(canTry))
  const { docs, docsLibrary, docsStart, docsWithSlash, openapi } = pageOperations
  const files = [
    [openapi, document],
    [docsLibrary, scalar],
    [docsStart, start],
  ] as const
  for (const [operation, file] of files) {
    http.route({ ...routeOf(operation), handler: async (request, reply) => file.send(request, reply) })
  }
  for (const operation of [docs, docsWithSlash]) {
    http.route({ ...routeOf(operation), handler: async (_request, reply) => sendPage(reply) })
  }
}

function script(make: () => Promise<string> | string): StaticAnswer {
  return new StaticAnswer({
    type: 'text/javascript; charset=utf-8',
    make,
    headers: { 'cross-origin-resource-policy': 'same-origin' },
  })
}

/**
 * The library contains its browser script in a server plugin. It is loaded when the page is opened first,
 * because it takes 4 MB that most processes never need.
 */
const scalar = script(async () => {
  const [{ default: Fastify }, { default: plugin }] = await Promise.all([
    import('fastify'),
    import('@scalar/fastify-api-reference'),
  ])
  const plainServer = Fastify()
  await plainServer.register(plugin, { routePrefix: '/docs', configuration: { url: '/openapi.json' } })
  const { body, statusCode } = await plainServer.inject('/docs/js/scalar.js')
  await plainServer.close()
  if (statusCode !== 200) throw new Error('The reference library no longer has its script at js/scalar.js.')
  return body
})

/**
 * Runs before the library. Several parts of the library add style sheets by script and know no nonce, so each
 * style element that a script creates gets the nonce of this page; a style element in markup gets none and
 * stays blocked. A style attribute that a script sets is set as a property, which the policy allows. Style
 * attributes are removed from markup (the library counts lines of samples in them) before the policy would
 * refuse them with an error in the console.
 */
function startScript(canTry: boolean): string {
  const configuration = {
    url: '/openapi.json',
    title: 'Lethe API',
    withDefaultFonts: false,
    hideClientButton: true,
    hideTestRequestButton: !canTry,
    telemetry: false,
    showDeveloperTools: 'never',
    agent: { disabled: true },
    mcp: { disabled: true },
  }
  return `'use strict'
const nonce = document.querySelector('meta[property=csp-nonce]').content
const { createElement } = document
document.createElement = (name, options) => {
  const element = createElement.call(document, name, options)
  if (element instanceof HTMLStyleElement) element.nonce = nonce
  return element
}
const { setAttribute } = Element.prototype
Element.prototype.setAttribute = function (name, value) {
  if (name === 'style') this.style.cssText = value
  else setAttribute.call(this, name, value)
}
const innerHtml = Object.getOwnPropertyDescriptor(Element.prototype, 'innerHTML')
const withoutStyles = (html) => String(html ?? '').replace(/(<[a-z][^<>]*?) style="[^"]*"/gi, '$1')
Object.defineProperty(Element.prototype, 'innerHTML', {
  ...innerHtml,
  set(html) {
    innerHtml.set.call(this, withoutStyles(html))
  },
})
addEventListener('DOMContentLoaded', () => Scalar.createApiReference('#app', ${JSON.stringify(configuration)}))
`
}

function sendPage(reply: FastifyReply): FastifyReply {
  const nonce = randomBytes(16).toString('base64')
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'nonce-${nonce}'`,
    "connect-src 'self'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]
  return reply
    .headers({
      'content-security-policy': policy.join('; '),
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
    })
    .type('text/html; charset=utf-8')
    .send(page(nonce))
}

function page(nonce: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta property="csp-nonce" content="${nonce}">
<link rel="icon" href="data:,">
<title>Lethe API</title>
</head>
<body>
<div id="app"></div>
<script src="/docs/start.js"></script>
<script src="/docs/scalar.js"></script>
</body>
</html>
`
}
