// Bodies of OTLP/HTTP responses in the encoding of the request: `Export<Signal>ServiceResponse` with 2xx and
// `google.rpc.Status` with 4xx and 5xx (OTLP specification, "OTLP/HTTP Response"). A partial success is
// present only where something was rejected or there is a warning; in both cases a client must not retry.

import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import type { Signal } from '../../telemetry/schema/tables.ts'
import type { OtlpEncoding } from './decode-export.ts'

const contentTypes = { protobuf: 'application/x-protobuf', json: 'application/json' } as const

const rejectedNames = {
  metrics: 'rejectedDataPoints',
  logs: 'rejectedLogRecords',
  traces: 'rejectedSpans',
} as const satisfies Record<Signal, string>

/**
 * Codes of google.rpc.Code by HTTP status, where both define one; other 4xx are INVALID_ARGUMENT, 5xx
 * INTERNAL.
 */
const rpcCodes: ReadonlyMap<number, number> = new Map([
  [401, 16],
  [403, 7],
  [404, 5],
  [408, 4],
  [413, 8],
  [429, 8],
  [503, 14],
])

interface PartialSuccess {
  /** Number of rejected records; with 0 `message` is a warning about an accepted request. */
  readonly rejected: number
  /** A message for the developer of the client; empty for none. */
  readonly message: string
}

/** Returns the Content-Type header of both kinds of body. */
export function otlpContentType(encoding: OtlpEncoding): string {
  return contentTypes[encoding]
}

/**
 * Returns the body of a 200. Without rejections and message it is the empty message: no bytes in protobuf,
 * `{}` in JSON.
 */
export function encodeExportResponse(signal: Signal, encoding: OtlpEncoding, result: PartialSuccess): Buffer {
  const isFull = result.rejected === 0 && result.message === ''
  if (encoding === 'json') return Buffer.from(isFull ? '{}' : partialSuccessJson(signal, result))
  return isFull ? Buffer.alloc(0) : partialSuccessProto(result)
}

/** `rejected` is an int64, which the protobuf JSON mapping writes as a string. */
function partialSuccessJson(signal: Signal, { rejected, message }: PartialSuccess): string {
  const counted = rejected === 0 ? {} : { [rejectedNames[signal]]: String(rejected) }
  const said = message === '' ? {} : { errorMessage: message }
  return JSON.stringify({ partialSuccess: { ...counted, ...said } })
}

/** The three responses have the same fields: `partial_success` = 1 with the count = 1 and the message = 2. */
function partialSuccessProto({ rejected, message }: PartialSuccess): Buffer {
  const writer = new BinaryWriter()
  writer.tag(1, WireType.LengthDelimited).fork()
  if (rejected !== 0) writer.tag(1, WireType.Varint).int64(rejected)
  if (message !== '') writer.tag(2, WireType.LengthDelimited).string(message)
  return Buffer.from(writer.join().finish())
}

/** Returns the body of a 4xx or 5xx: a `google.rpc.Status` whose code follows from the HTTP status. */
export function encodeStatus(encoding: OtlpEncoding, httpStatus: number, message: string): Buffer {
  const code = rpcCodeOf(httpStatus)
  if (encoding === 'json') return Buffer.from(JSON.stringify({ code, message }))
  const writer = new BinaryWriter()
  writer.tag(1, WireType.Varint).int32(code)
  if (message !== '') writer.tag(2, WireType.LengthDelimited).string(message)
  return Buffer.from(writer.finish())
}

/** Returns the google.rpc.Code of an HTTP error status; gRPC responses use it too. */
export function rpcCodeOf(httpStatus: number): number {
  return rpcCodes.get(httpStatus) ?? (httpStatus < 500 ? 3 : 13)
}
