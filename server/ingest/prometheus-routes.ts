// Prometheus remote write: POST /api/v1/write, versions 1.0 and 2.0, which differ in Content-Type. 204 means
// that everything is committed. Where only a part could be stored, the response is 400 with the reasons, as
// the protocol requires: Prometheus does not repeat that. It repeats 503 and, where configured, 429. The
// X-…-Written headers have the number of stored records.

import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ingestOperations } from '../../contract/operations/ingest.ts'
import { AppError } from '../core/app-error.ts'
import { callerOf, mediaTypeOf } from '../http/request.ts'
import { routeOf } from '../http/serve.ts'
import type { BodyBudget } from './body-budget.ts'
import type { Intake, IntakeResult } from './intake.ts'
import type { RemoteWriteVersion } from './prometheus/remote-write-wire.ts'
import { snappyLength } from './prometheus/snappy.ts'
import { IngestBody, readBody } from './read-body.ts'
import type { ReadTurns } from './read-turns.ts'
import { incomingBody } from './routes.ts'

interface RemoteWriteOptions {
  readonly intake: Intake
  /** Largest body, before and after decompression, bytes. */
  readonly bodyLimitBytes: number
  readonly budget: BodyBudget
  readonly reads: ReadTurns
}

const mediaType = 'application/x-protobuf'

/** By the `proto` parameter of the content type; version 1.0 has none. */
const versions: Readonly<Record<string, RemoteWriteVersion>> = {
  '': '1.0',
  'prometheus.WriteRequest': '1.0',
  'io.prometheus.write.v2.Request': '2.0',
}

const kinds = ['Samples', 'Histograms', 'Exemplars'] as const

export async function addRemoteWriteRoute(http: FastifyInstance, options: RemoteWriteOptions): Promise<void> {
  const limits = { limitBytes: options.bodyLimitBytes, budget: options.budget, reads: options.reads }
  await http.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(mediaType, (request: FastifyRequest, payload: Readable) =>
      readBody(incomingBody(request, payload), limits),
    )
    // A request that is refused between its body and its handler has nobody else to release it.
    scope.addHook('onError', async (request) => release(request))
    scope.route({
      ...routeOf(ingestOperations.remoteWrite),
      preParsing: async (request) => void versionOf(request),
      handler: (request, reply) => take(request, reply, options),
    })
  })
}

/** Throws `unsupported_media_type` where it is neither version, before the body is read. */
function versionOf(request: FastifyRequest): RemoteWriteVersion {
  const parameters = (request.headers['content-type'] ?? '').split(';').slice(1)
  const named = parameters.map(
    (parameter) => /^proto\s*=\s*"?([\w.]*)"?$/i.exec(parameter.trim())?.[1] ?? null,
  )
  const proto = named.find((name) => name !== null) ?? ''
  const version = Object.hasOwn(versions, proto) ? versions[proto] : undefined
  const coding = (request.headers['content-encoding'] ?? '').trim().toLowerCase()
  // The protocol has one compression. A sender that names none means it; Prometheus' own receiver does the
  // same.
  const isSnappy = coding === '' || coding === 'snappy'
  if (version !== undefined && isSnappy && mediaTypeOf(request) === mediaType) return version
  throw new AppError('unsupported_media_type', {
    sentence:
      'Send application/x-protobuf, compressed with Snappy: prometheus.WriteRequest, or io.prometheus.write.v2.Request named by proto= in the content type.',
  })
}

async function take(
  request: FastifyRequest,
  reply: FastifyReply,
  { intake, bodyLimitBytes }: RemoteWriteOptions,
): Promise<FastifyReply> {
  const version = versionOf(request)
  try {
    // Uncompressed only when it is decoded, so that waiting bodies take little memory.
    const bodyBytes = snappyLength(compressedOf(request), bodyLimitBytes)
    const { tenantId, placement } = callerOf(request)
    const place = { tenantId, placement }
    const results = await intake.take(place, 'metrics', {
      bodyBytes,
      job: () => {
        const body = compressedOf(request)
        return { protocol: 'remote_write', version, body, limitBytes: bodyLimitBytes, place }
      },
      release: () => release(request),
    })
    for (const [i, kind] of kinds.entries()) {
      reply.header(
        `x-prometheus-remote-write-${kind.toLowerCase()}-written`,
        String(results[i]?.accepted ?? 0),
      )
    }
    const left = results.filter(({ rejected }) => rejected > 0)
    if (left.length === 0) return reply.status(204).send(null)
    throw new AppError('partial_write', { sentence: partialSentence(results, left) })
  } finally {
    release(request)
  }
}

function partialSentence(results: readonly IntakeResult[], left: readonly IntakeResult[]): string {
  const stored = results.reduce((sum, { accepted }) => sum + accepted, 0)
  const reasons = left.map(({ reasons: text }) => text).join('; ')
  return `Left out: ${reasons}. The rest (${stored}) is stored; do not repeat the request.`
}

function compressedOf({ body }: FastifyRequest): Buffer {
  return body instanceof IngestBody ? body.bytes : Buffer.alloc(0)
}

/** The body is not needed while its rows wait for their commit. */
function release(request: FastifyRequest): void {
  if (request.body instanceof IngestBody) request.body.release()
  request.body = undefined
}
