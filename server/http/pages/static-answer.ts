// A body that is the same for everybody, such as the OpenAPI document or a script: serialised once,
// compressed once, and then sent from memory. Frequent requests cost the service no time, and a client with a
// current copy gets a 304 without a body.

import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'

interface StaticAnswerOptions {
  /** Media type with its charset. */
  readonly type: string
  /** Runs at the first request. It may not depend on the request. */
  readonly make: () => Promise<string | Buffer> | string | Buffer
  /** Further headers of each response with a body. */
  readonly headers?: Readonly<Record<string, string>>
  /** Who may store it, and for how long; where absent, a copy is revalidated at each use. */
  readonly cacheControl?: string
}

/** Off the event loop, because the largest script takes a quarter of a second. */
const compress = promisify(gzip)

interface Form {
  readonly bytes: Buffer
  readonly etag: string
}

/**
 * The browser revalidates each time and gets a 304 while nothing has changed, so that a new version of the
 * service is shown at once. The content is public, so shared caches may store it.
 */
const revalidated = 'public, no-cache'

export class StaticAnswer {
  readonly #options: StaticAnswerOptions
  #made: Promise<{ readonly plain: Form; readonly packed: Form }> | null = null

  constructor(options: StaticAnswerOptions) {
    this.#options = options
  }

  /** Sends 200 in a form that the client accepts, or 304 where its copy is current. */
  async send(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { plain, packed } = await this.#forms()
    const form = takesGzip(request.headers['accept-encoding']) ? packed : plain
    const { cacheControl = revalidated, headers } = this.#options
    reply.headers({ ...headers, 'cache-control': cacheControl, etag: form.etag })
    addVary(reply, 'accept-encoding')
    if (namesOne(request.headers['if-none-match'], [plain.etag, packed.etag])) return reply.status(304).send()
    if (form === packed) reply.header('content-encoding', 'gzip')
    return reply.type(this.#options.type).send(form.bytes)
  }

  #forms() {
    this.#made ??= this.#make().catch((error: unknown) => {
      // The next request tries again.
      this.#made = null
      throw error
    })
    return this.#made
  }

  async #make() {
    const bytes = Buffer.from(await this.#options.make())
    const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 22)
    return {
      plain: { bytes, etag: `"${hash}"` },
      packed: { bytes: await compress(bytes), etag: `"${hash}-gzip"` },
    }
  }
}

/** Keeps existing values: a page in two languages or media types varies by more than its coding. */
function addVary(reply: FastifyReply, name: string): void {
  const given = reply.getHeader('vary')
  reply.header('vary', given === undefined ? name : `${given}, ${name}`)
}

/**
 * Whether an Accept-Encoding header (RFC 9110, 12.5.3) accepts gzip. Without the header the plain form is
 * sent.
 */
export function takesGzip(acceptEncoding: string | string[] | undefined): boolean {
  const weights = new Map(
    String(acceptEncoding ?? '')
      .toLowerCase()
      .split(',')
      .map((part) => {
        const [coding = '', ...parameters] = part.split(';').map((text) => text.trim())
        const weight = parameters.find((text) => text.startsWith('q='))?.slice(2) ?? '1'
        return [coding, Number(weight)] as const
      }),
  )
  return (weights.get('gzip') ?? weights.get('*') ?? 0) > 0
}

/** Whether an If-None-Match header (RFC 9110, 13.1.2) names one of the forms. */
function namesOne(ifNoneMatch: string | undefined, etags: readonly string[]): boolean {
  if (ifNoneMatch === undefined) return false
  if (ifNoneMatch.trim() === '*') return true
  const named = ifNoneMatch.split(',').map((text) => text.trim().replace(/^W\//, ''))
  return named.some((etag) => etags.includes(etag))
}
