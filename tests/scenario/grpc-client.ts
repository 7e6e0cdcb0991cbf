// A gRPC client without an SDK: bytes in, bytes or a status out, so that a test can send what no exporter
// would send and reads details that exporters don't show.

import { Client, compressionAlgorithms, credentials, Metadata, type ServiceError } from '@grpc/grpc-js'
import protobuf from 'protobufjs'
import type { Signal } from '../../server/telemetry/schema/tables.ts'

const details = protobuf.parse(
  `syntax = "proto3";
message Any { string typeUrl = 1; bytes value = 2; }
message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
message Duration { int64 seconds = 1; int32 nanos = 2; }
message RetryInfo { Duration retryDelay = 1; }
message ErrorInfo { string reason = 1; string domain = 2; }
message Response { PartialSuccess partialSuccess = 1; }
message PartialSuccess { int64 rejected = 1; string errorMessage = 2; }`,
  { keepCase: true },
).root

const paths = {
  metrics: '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export',
  logs: '/opentelemetry.proto.collector.logs.v1.LogsService/Export',
  traces: '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
} as const satisfies Record<Signal, string>

interface GrpcAnswer {
  /** 0 is success. */
  readonly code: number
  readonly message: string
  /** Of google.rpc.RetryInfo; null where there is none. */
  readonly retrySeconds: number | null
  /** Of google.rpc.ErrorInfo; null for a success. */
  readonly reason: string | null
  /** Rejected records of a success, and the reason. */
  readonly partial: { readonly rejected: number; readonly message: string } | null
}

export class GrpcClient {
  readonly #client: Client

  constructor(address: string, { isCompressed = false } = {}) {
    const { gzip, identity } = compressionAlgorithms
    this.#client = new Client(address, credentials.createInsecure(), {
      'grpc.enable_retries': 0,
      'grpc.default_compression_algorithm': isCompressed ? gzip : identity,
    })
  }

  /**
   * @param secret of a bearer, or the whole header
   * @param path another method than the signal's own
   */
  export(
    signal: Signal,
    body: Uint8Array,
    secret: string | { readonly authorization: string } | null,
    path: string = paths[signal],
  ): Promise<GrpcAnswer> {
    const metadata = new Metadata()
    const authorization = typeof secret === 'string' ? `Bearer ${secret}` : secret?.authorization
    if (authorization !== undefined) metadata.set('authorization', authorization)
    const asIs = (bytes: Buffer) => bytes
    return new Promise((resolve) => {
      const done = (error: ServiceError | null, answer?: Buffer) =>
        resolve(error === null ? successOf(answer ?? Buffer.alloc(0)) : failureOf(error))
      this.#client.makeUnaryRequest(path, asIs, asIs, Buffer.from(body), metadata, done)
    })
  }

  /** Sends several messages in one call. */
  exportMany(signal: Signal, bodies: readonly Uint8Array[], secret: string): Promise<GrpcAnswer> {
    const metadata = new Metadata()
    metadata.set('authorization', `Bearer ${secret}`)
    const asIs = (bytes: Buffer) => bytes
    return new Promise((resolve) => {
      const done = (error: ServiceError | null, answer?: Buffer) =>
        resolve(error === null ? successOf(answer ?? Buffer.alloc(0)) : failureOf(error))
      const call = this.#client.makeClientStreamRequest(paths[signal], asIs, asIs, metadata, done)
      call.on('error', () => {})
      for (const body of bodies) call.write(Buffer.from(body))
      call.end()
    })
  }

  close(): void {
    this.#client.close()
  }
}

function successOf(answer: Buffer): GrpcAnswer {
  const type = details.lookupType('Response')
  const { partialSuccess } = type.toObject(type.decode(answer), { longs: Number })
  const partial =
    partialSuccess === undefined
      ? null
      : { rejected: partialSuccess.rejected ?? 0, message: partialSuccess.errorMessage ?? '' }
  return { code: 0, message: '', retrySeconds: null, reason: null, partial }
}

function failureOf(error: ServiceError): GrpcAnswer {
  const [bytes] = error.metadata.get('grpc-status-details-bin')
  const retry = Buffer.isBuffer(bytes) ? detailOf('RetryInfo', bytes, error) : null
  const info = Buffer.isBuffer(bytes) ? detailOf('ErrorInfo', bytes, error) : null
  return {
    code: error.code,
    message: error.details,
    retrySeconds: retry?.retryDelay.seconds ?? null,
    reason: info?.reason ?? null,
    partial: null,
  }
}

function detailOf(name: 'RetryInfo' | 'ErrorInfo', bytes: Buffer, error: ServiceError) {
  const statusType = details.lookupType('Status')
  const status = statusType.toObject(statusType.decode(bytes))
  if (status.code !== error.code || status.message !== error.details) {
    throw new Error(
      `The details say ${status.code} ${status.message}, the call ${error.code} ${error.details}`,
    )
  }
  const found = (status.details ?? []).find(
    ({ typeUrl }: { typeUrl: string }) => typeUrl === `type.googleapis.com/google.rpc.${name}`,
  )
  if (found === undefined) return null
  const type = details.lookupType(name)
  return type.toObject(type.decode(found.value), { longs: Number })
}
