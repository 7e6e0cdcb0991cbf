// The root address: a browser is redirected to the console, and a program gets the name of the service and
// further addresses. Public, so it says nothing about any organisation.

import type { FastifyInstance } from 'fastify'
import { pageOperations } from '../../../contract/operations/pages.ts'
import type { FrontPage } from '../../../contract/pages.ts'
import { routeOf } from '../serve.ts'
import { prefersHtml } from './prefers-html.ts'
import { StaticAnswer } from './static-answer.ts'

const headers = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  vary: 'accept',
} as const

/** @param hasDocs whether the reference is at this address */
export function addFrontPage(http: FastifyInstance, version: string, hasDocs: boolean): void {
  const page: FrontPage = {
    name: 'Lethe',
    version,
    console: pageOperations.consoleStart.path,
    ...(hasDocs && { docs: '/docs', openapi: '/openapi.json' }),
    health: '/healthz',
    readiness: '/readyz',
  }
  const asJson = new StaticAnswer({
    type: 'application/json; charset=utf-8',
    make: () => JSON.stringify(page),
    headers,
  })
  http.route({
    ...routeOf(pageOperations.front),
    handler: async (request, reply) =>
      prefersHtml(request.headers.accept)
        ? reply.headers(headers).redirect(page.console, 302)
        : asJson.send(request, reply),
  })
}
