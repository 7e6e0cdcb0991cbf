// Refusals as gRPC statuses. Each has its code of the catalogue in a google.rpc.ErrorInfo. RESOURCE_EXHAUSTED
// and UNAVAILABLE have a google.rpc.RetryInfo where the client should retry; RESOURCE_EXHAUSTED without one,
// such as for a message that is too large, must not be retried (OTLP specification, "OTLP/gRPC Response" and
// "OTLP/gRPC Throttling").

import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import type { ErrorCode } from '../../contract/errors.ts'
import type { AppError } from '../core/app-error.ts'
import { rpcCodeOf } from './otlp/response.ts'

const resourceExhausted = 8

/**
 * Where gRPC distinguishes what one HTTP status means: the service has too much, or is unavailable for the
 * moment.
 */
const codes: Partial<Record<ErrorCode, number>> = { overloaded: resourceExhausted }

/** Returns the google.rpc.Code of a refusal. */
export function grpcStatusOf({ code, status }: AppError): number {
  return codes[code] ?? rpcCodeOf(status)
}

/** Returns a google.rpc.Status for the trailer `grpc-status-details-bin`. */
export function grpcDetails(error: AppError): Buffer {
  const writer = new BinaryWriter()
  writer.tag(1, WireType.Varint).int32(grpcStatusOf(error))
  writer.tag(2, WireType.LengthDelimited).string(error.message)
  addDetail(writer, 'ErrorInfo', errorInfo(error.code))
  if (error.retryAfterSeconds !== undefined) {
    addDetail(writer, 'RetryInfo', retryInfo(error.retryAfterSeconds))
  }
  return Buffer.from(writer.finish())
}

/** `details` = 3, each a google.protobuf.Any. */
function addDetail(writer: BinaryWriter, type: string, value: Uint8Array): void {
  writer.tag(3, WireType.LengthDelimited).fork()
  writer.tag(1, WireType.LengthDelimited).string(`type.googleapis.com/google.rpc.${type}`)
  writer.tag(2, WireType.LengthDelimited).bytes(value)
  writer.join()
}

/** `reason` = 1, in capitals as its rules require, and `domain` = 2. */
function errorInfo(code: ErrorCode): Uint8Array {
  const writer = new BinaryWriter()
  writer.tag(1, WireType.LengthDelimited).string(code.toUpperCase())
  writer.tag(2, WireType.LengthDelimited).string('lethe')
  return writer.finish()
}

/** `retry_delay` = 1, a google.protobuf.Duration with its seconds = 1. */
function retryInfo(seconds: number): Uint8Array {
  const writer = new BinaryWriter()
  writer.tag(1, WireType.LengthDelimited).fork()
  writer.tag(1, WireType.Varint).int64(seconds)
  return writer.join().finish()
}
