// Serves the console under /console. Its page runs only scripts that are files of this service, loads nothing
// from elsewhere and cannot be framed: it shows text that strangers sent as telemetry. Files have the hash of
// their content in their names and never change; the page itself is never stored.

import { randomBytes } from 'node:crypto'
import { extname } from 'node:path'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { pageOperations } from '../../../contract/operations/pages.ts'
import { AppError } from '../../core/app-error.ts'
import { StaticAnswer } from '../pages/static-answer.ts'
import { routeOf } from '../serve.ts'
import type { BuiltFiles } from './console-build.ts'

/** Media types of the files that a build has; another type fails the load, not a request. */
const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Each version has another name, so a stored copy never becomes stale. */
const immutable = 'public, max-age=31536000, immutable'

/** Placeholder in the built page, which each response replaces by its own nonce. */
const noncePlaceholder = /__NONCE__/g

interface LoadedConsole {
  readonly page: string
  /** By file name. */
  readonly assets: ReadonlyMap<string, StaticAnswer>
}

export class ConsolePages {
  readonly #build: () => Promise<BuiltFiles>
  #loaded: Promise<LoadedConsole> | null = null

  /** @param build returns the files of the console; called once, before the first response */
  constructor(build: () => Promise<BuiltFiles>) {
    this.#build = build
  }

  /**
   * Builds and loads the console, once; a build that failed is not tried again before the next start. Rejects
   * with what went wrong.
   */
  async prepare(): Promise<void> {
    await this.#load()
  }

  addRoutes(http: FastifyInstance): void {
    for (const operation of [pageOperations.consoleStart, pageOperations.consolePage]) {
      http.route({
        ...routeOf(operation),
        handler: async (_request, reply) => sendPage(reply, (await this.#loadFor(http)).page),
      })
    }
    http.route({
      ...routeOf(pageOperations.consoleFile),
      handler: async (request, reply) => {
        const { file } = z.object({ file: z.string() }).parse(request.params)
        const answer = (await this.#loadFor(http)).assets.get(file)
        if (answer === undefined)
          throw new AppError('not_found', { sentence: 'The console has no such file.' })
        return answer.send(request as FastifyRequest, reply)
      },
    })
  }

  async #loadFor(http: FastifyInstance): Promise<LoadedConsole> {
    try {
      return await this.#load()
    } catch (err) {
      http.log.error({ err }, 'the console is not available')
      throw new AppError('internal', {
        sentence: 'The console could not be built; the log of the service says why.',
      })
    }
  }

  #load(): Promise<LoadedConsole> {
    this.#loaded ??= this.#build().then(loadConsole)
    return this.#loaded
  }
}

function loadConsole(files: BuiltFiles): LoadedConsole {
  const page = files.get('index.html')
  if (page === undefined) throw new Error('The build of the console has no index.html.')
  const assets = [...files]
    .filter(([path]) => path.startsWith('assets/'))
    .map(([path, bytes]) => [path.slice('assets/'.length), assetOf(path, bytes)] as const)
  return { page: page.toString('utf8'), assets: new Map(assets) }
}

function assetOf(path: string, bytes: Buffer): StaticAnswer {
  const type = types[extname(path)]
  if (type === undefined) throw new Error(`The build of the console has a file of unknown type: ${path}`)
  return new StaticAnswer({
    type,
    make: () => bytes,
    cacheControl: immutable,
    headers: { 'cross-origin-resource-policy': 'same-origin' },
  })
}

function sendPage(reply: FastifyReply, page: string): FastifyReply {
  const nonce = randomBytes(16).toString('base64')
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "style-src-attr 'unsafe-inline'",
    "worker-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
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
    .send(page.replace(noncePlaceholder, nonce))
}
