// Refusals in the words of gRPC. RESOURCE_EXHAUSTED and UNAVAILABLE carry a google.rpc.RetryInfo where repeating is
// right; RESOURCE_EXHAUSTED without one, such as for a message that is too large, must not be repeated (OTLP
// specification, "OTLP/gRPC Response" and "OTLP/gRPC Throttling").

import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import type { ErrorCode } from '../../contract/errors.ts'
import type { AppError } from '../core/app-error.ts'
import { rpcCodeOf } from './otlp-response.ts'

const resourceExhausted = 8

/** Where gRPC tells apart what one HTTP status means: the service has too much, or can't just now. */
const codes: Partial<Record<ErrorCode, number>> = { overloaded: resourceExhausted }

/** The google.rpc.Code of a refusal. */
export function grpcStatusOf({ code, status }: AppError): number {
  return codes[code] ?? rpcCodeOf(status)
}

/** A google.rpc.Status for the trailer `grpc-status-details-bin`. */
export function grpcDetails(error: AppError): Buffer {
  const writer = new BinaryWriter()
  writer.tag(1, WireType.Varint).int32(grpcStatusOf(error))
  writer.tag(2, WireType.LengthDelimited).string(error.message)
  if (error.retryAfterSeconds !== undefined) {
    writer.tag(3, WireType.LengthDelimited).fork()
    writer.tag(1, WireType.LengthDelimited).string('type.googleapis.com/google.rpc.RetryInfo')
    writer.tag(2, WireType.LengthDelimited).bytes(retryInfo(error.retryAfterSeconds))
    writer.join()
  }
  return Buffer.from(writer.finish())
}

/** `retry_delay` = 1, a google.protobuf.Duration with its seconds = 1. */
function retryInfo(seconds: number): Uint8Array {
  const writer = new BinaryWriter()
  writer.tag(1, WireType.LengthDelimited).fork()
  writer.tag(1, WireType.Varint).int64(seconds)
  return writer.join().finish()
}
