// OTLP/HTTP: POST /v1/metrics, /v1/logs, /v1/traces, protobuf and JSON, plain or gzip. Success means
// committed by the engine. Responses and refusals have OTLP's own bodies in the encoding of the request,
// because exporters read those. A refusal that can be retried is 503 (or 429) with Retry-After, as the OTLP
// specification requires.

import assert from 'node:assert/strict'
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ingestOperations } from '../../contract/operations/ingest.ts'
import { AppError } from '../core/app-error.ts'
import type { Clock } from '../core/clock.ts'
import { knownError, setRefusalHeaders } from '../http/refusal.ts'
import { callerOf, mediaTypeOf } from '../http/request.ts'
import { routeOf } from '../http/serve.ts'
import { type Signal, signals } from '../telemetry/schema/tables.ts'
import type { BodyBudget } from './body-budget.ts'
import type { Intake } from './intake.ts'
import type { OtlpEncoding } from './otlp/decode-export.ts'
import { encodeExportResponse, encodeStatus, otlpContentType } from './otlp/response.ts'
import { type IncomingBody, IngestBody, readBody } from './read-body.ts'
import type { ReadTurns } from './read-turns.ts'
import { OtlpDecodeError } from './rows/otlp-decode-error.ts'
import { type Coding, claimedBytes } from './uncompress.ts'

interface IngestRoutesOptions {
  readonly intake: Intake
  readonly clock: Clock
  /** The largest body after decompression, bytes; limits what a small compressed body can expand to. */
  readonly bodyLimitBytes: number
  readonly budget: BodyBudget
  readonly reads: ReadTurns
}

const mediaTypes: Record<string, OtlpEncoding> = {
  'application/x-protobuf': 'protobuf',
  'application/json': 'json',
}

export async function addIngestRoutes(http: FastifyInstance, options: IngestRoutesOptions): Promise<void> {
  await http.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    const limits = { limitBytes: options.bodyLimitBytes, budget: options.budget, reads: options.reads }
    scope.addContentTypeParser(Object.keys(mediaTypes), (request: FastifyRequest, payload: Readable) =>
      readBody(incomingBody(request, payload), limits),
    )
    scope.addHook('preParsing', async (request) => void codingOf(request))
    // A request that is refused between its body and its handler has nobody else to release it.
    scope.addHook('onError', async (request) => release(request))
    scope.setErrorHandler<Error>((error, request, reply) => sendStatus(error, request, reply))
    for (const signal of signals) addExportRoute(scope, signal, options)
  })
}

function addExportRoute(http: FastifyInstance, signal: Signal, options: IngestRoutesOptions): void {
  http.route({
    ...routeOf(ingestOperations[signal]),
    handler: async (request, reply) => {
      const encoding = encodingOf(request)
      const coding = codingOf(request)
      const { bodyLimitBytes: limitBytes } = options
      const { tenantId, placement } = callerOf(request)
      const place = { tenantId, placement }
      try {
        const [result] = await options.intake.take(place, signal, {
          bodyBytes: claimedBytes(coding, receivedBytes(request), limitBytes),
          isJson: encoding === 'json',
          job: () => {
            const body = receivedBytes(request)
            const receivedNs = options.clock.nowNs()
            return { protocol: 'otlp', signal, encoding, coding, body, limitBytes, place, receivedNs }
          },
          release: () => release(request),
        })
        assert(result)
        const { rejected, reasons: message } = result
        return send(reply, 200, encoding, encodeExportResponse(signal, encoding, { rejected, message }))
      } finally {
        release(request)
      }
    },
  })
}

/** Returns the body of the caller as routes of all protocols read it. */
export function incomingBody(request: FastifyRequest, payload: Readable): IncomingBody {
  const { raw } = request
  const declaredBytes = Number(raw.headers['content-length'] ?? 0)
  return { tenantId: callerOf(request).tenantId, incoming: raw, payload, declaredBytes }
}

function receivedBytes({ body }: FastifyRequest): Buffer {
  return body instanceof IngestBody ? body.bytes : Buffer.alloc(0)
}

/** The body is not needed while its rows wait for their commit. */
function release(request: FastifyRequest): void {
  if (request.body instanceof IngestBody) request.body.release()
  request.body = undefined
}

/** Throws `unsupported_media_type` before the body is read. */
function codingOf(request: FastifyRequest): Coding {
  const coding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase()
  if (coding === 'identity' || coding === 'gzip') return coding
  throw new AppError('unsupported_media_type', {
    sentence: 'Send the body plain or with Content-Encoding gzip.',
  })
}

function encodingOf(request: FastifyRequest): OtlpEncoding {
  return mediaTypes[mediaTypeOf(request)] ?? 'json'
}

function sendStatus(error: Error, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const encoding = encodingOf(request)
  if (error instanceof OtlpDecodeError)
    return send(reply, 400, encoding, encodeStatus(encoding, 400, error.message))
  const known = knownError(error)
  if (known.code === 'internal') request.log.error({ err: error, requestId: request.id }, 'an export failed')
  setRefusalHeaders(reply, known)
  return send(reply, known.status, encoding, encodeStatus(encoding, known.status, known.message))
}

function send(reply: FastifyReply, status: number, encoding: OtlpEncoding, body: Buffer): FastifyReply {
  return reply.status(status).header('content-type', otlpContentType(encoding)).send(body)
}
