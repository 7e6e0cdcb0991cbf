// OTLP/gRPC: the Export method of the three collector services. The bytes of a request go to the same decoder as those of OTLP/HTTP,
// so nothing but the envelope differs. Order as over HTTP: ready, who, role, size, work. A caller is known before a byte of the
// message is read, and a call that is refused reads none. Status codes and retry hints are those of the OTLP specification:
// whoever gets RetryInfo may repeat, nobody else should.

import grpc from '@grpc/grpc-js'
import type { FastifyBaseLogger } from 'fastify'
import { AppError } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import type { Clock } from '../core/clock.ts'
import type { ClientLimits } from '../http/client-limits.ts'
import { knownError } from '../http/server.ts'
import { type Signal, signals } from '../telemetry/schema/tables.ts'
import type { BodyBudget, BodyHold } from './body-budget.ts'
import { decodeExport } from './decode-export.ts'
import { grpcDetails, grpcStatusOf } from './grpc-status.ts'
import { type Intake, senders } from './intake.ts'
import { OtlpDecodeError } from './otlp-decode-error.ts'
import { encodeExportResponse } from './otlp-response.ts'

export interface GrpcIngestOptions {
  readonly intake: Intake
  readonly clock: Clock
  readonly logger: Pick<FastifyBaseLogger, 'error'>
  /** Largest message after decompression, bytes. */
  readonly bodyLimitBytes: number
  readonly budget: BodyBudget
  readonly clients: ClientLimits
  /** False while starting or draining. */
  readonly isReady: () => boolean
}

/** Calls on one connection that may be open at once; a Collector has some ten. */
const streamsMax = 256

/** As long as over HTTP for a whole request to arrive. */
const readTimeoutMs = 60_000

/**
 * What a message that is still arriving counts as in the budget, bytes: about what exporters send. The library tells
 * its size only when it is whole.
 */
const arrivingBytes = 64 * 1024

/** How long calls and connections may take to end when the service stops: longer than the longest commit delay. */
const graceMs = 10_000

type Call = grpc.ServerReadableStream<Buffer, Buffer>
type Answer = grpc.sendUnaryData<Buffer>

export class GrpcIngest {
  readonly #options: GrpcIngestOptions
  readonly #server: grpc.Server

  constructor(options: GrpcIngestOptions) {
    this.#options = options
    // It would write to standard error what its callers are told anyway.
    grpc.setLogVerbosity(grpc.logVerbosity.NONE)
    this.#server = new grpc.Server({
      'grpc.max_receive_message_length': options.bodyLimitBytes,
      'grpc.max_concurrent_streams': streamsMax,
      // A page about connections that anybody who may connect could read.
      'grpc.enable_channelz': 0,
    })
    for (const signal of signals) {
      this.#server.addService(serviceOf(signal), {
        Export: (call: Call, answer: Answer) => void this.#answer(signal, call, answer),
      })
    }
  }

  /** Listens and answers the port. Throws where the port is taken. */
  listen(host: string, port: number): Promise<number> {
    const address = `${host.includes(':') ? `[${host}]` : host}:${port}`
    return new Promise((resolve, reject) => {
      this.#server.bindAsync(address, grpc.ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      )
    })
  }

  /** Takes no new calls and lets those under way end, within the grace. */
  async close(): Promise<void> {
    const done = new AbortController()
    const ended = new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve()))
    await Promise.race([ended, this.#options.clock.sleep(graceMs, done.signal)])
    done.abort()
    this.#server.forceShutdown()
  }

  async #answer(signal: Signal, call: Call, answer: Answer): Promise<void> {
    const hold = this.#options.budget.open()
    try {
      answer(null, await this.#take(signal, call, hold))
    } catch (error) {
      const known = refusalOf(error)
      if (known.code === 'internal') this.#options.logger.error({ err: error }, 'an export failed')
      const metadata = new grpc.Metadata()
      metadata.set('grpc-status-details-bin', grpcDetails(known))
      answer({ code: grpcStatusOf(known), details: known.message, metadata })
    } finally {
      hold.release()
    }
  }

  async #take(signal: Signal, call: Call, hold: BodyHold): Promise<Buffer> {
    const { tenantId, placement } = await this.#guard(call)
    const place = { tenantId, placement }
    hold.grow(arrivingBytes)
    let message: Buffer | null = await this.#read(call)
    const bodyBytes = message.length
    hold.grow(Math.max(0, bodyBytes - arrivingBytes))
    const [{ rejected, reasons }] = await this.#options.intake.take(place, signal, bodyBytes, () => {
      const arrival = { place, receivedNs: this.#options.clock.nowNs() }
      const decoded = decodeExport(signal, 'protobuf', message ?? Buffer.alloc(0), arrival)
      message = null
      hold.release()
      return [decoded] as const
    })
    return encodeExportResponse(signal, 'protobuf', { rejected, message: reasons })
  }

  async #guard(call: Call): Promise<Caller> {
    if (!this.#options.isReady()) throw new AppError('not_ready', { retryAfterSeconds: 1 })
    const headers = headersOf(call)
    const socket = { remoteAddress: call.getPeer().replace(/:\d+$/, '') }
    const { authorization } = headers
    const address = this.#options.clients.addressOf({ socket, headers })
    const caller = await this.#options.clients.identify({ authorization, takesBasic: true, address })
    if (!senders.some((role) => role === caller.role)) {
      throw new AppError('role_not_permitted', {
        sentence: `This operation is for ${senders.join(', ')}; your token has the role ${caller.role}.`,
      })
    }
    return caller
  }

  /** The one message of the call. A sender that takes too long, or goes away, is an error of its own. */
  async #read(call: Call): Promise<Buffer> {
    const arrived = new AbortController()
    const timer = this.#options.clock.sleep(readTimeoutMs, arrived.signal).then(() => {
      if (!arrived.signal.aborted) call.destroy()
    })
    let message: Buffer | null = null
    try {
      for await (const chunk of call) {
        if (message !== null) throw new AppError('bad_request', { sentence: 'Send one message in a call.' })
        message = chunk
      }
    } catch (cause) {
      if (cause instanceof AppError) throw cause
      throw new AppError('bad_request', { sentence: 'The call ended before its message was whole.', cause })
    } finally {
      arrived.abort()
      await timer
    }
    if (message === null) throw new AppError('bad_request', { sentence: 'The call has no message.' })
    return message
  }
}

/**
 * The service by hand: its bytes are ours to read and write. The method is declared as one with a stream of requests, which on the
 * wire is the same as one request, because only then does the library run it before it has read the message.
 */
function serviceOf(signal: Signal): grpc.ServiceDefinition {
  const [folder, name] =
    signal === 'traces' ? ['trace', 'Trace'] : [signal, `${signal[0]?.toUpperCase()}${signal.slice(1)}`]
  const asIs = (bytes: Buffer): Buffer => bytes
  return {
    Export: {
      path: `/opentelemetry.proto.collector.${folder}.v1.${name}Service/Export`,
      requestStream: true,
      responseStream: false,
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
    },
  }
}

function headersOf({ metadata }: Call): Record<string, string> {
  return Object.fromEntries(
    Object.entries(metadata.getMap()).map(([name, value]) => [name, value.toString()]),
  )
}

function refusalOf(error: unknown): AppError {
  return error instanceof OtlpDecodeError
    ? new AppError('bad_request', { sentence: error.message, cause: error })
    : knownError(error)
}
