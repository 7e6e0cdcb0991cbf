// One OTLP/HTTP export as a careful client sends it: protobuf, gzip, bearer token, and the retry rules of the
// OpenTelemetry protocol specification ("OTLP/HTTP Response"): 429, 502, 503, 504 and a broken connection are
// retried, after `Retry-After` where the server sends it; every other refusal is final. A 2xx with rejected
// rows is an error too, because the demo sends only valid rows.

import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import type { Clock } from '../core/clock.ts'
import type { Payload } from './otlp-batch.ts'

const compress = promisify(gzip)

/** Gives up after this many tries while the server only asks to wait; with the waits below, over a minute. */
const maxTries = 10
const firstWaitMs = 500
const longestWaitMs = 15_000

export type Fetch = typeof globalThis.fetch

interface Destination {
  /** Base URL of the OTLP/HTTP server, such as `http://127.0.0.1:8080`; `/v1/...` is added. */
  readonly endpoint: string
  readonly token: string
  readonly clock: Clock
  readonly fetch?: Fetch
  /** Ends waiting and sending; data that is not yet acknowledged may or may not have arrived. */
  readonly signal?: AbortSignal
}

/**
 * The server refused finally, or for too long. The message has the address, the status and the server's own
 * message.
 */
export class SendError extends Error {
  /** Absent where there was no response. */
  readonly status: number | undefined

  constructor(message: string, status: number | undefined, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'SendError'
    this.status = status
  }
}

interface Sent {
  readonly rows: number
  readonly rawBytes: number
  readonly compressedBytes: number
}

/**
 * Resolves when the server has acknowledged the whole payload. Throws {@link SendError} when it refuses it,
 * and the signal's reason when that aborts.
 */
export async function sendPayload(payload: Payload, destination: Destination): Promise<Sent> {
  const { endpoint, clock, signal } = destination
  const url = `${endpoint.replace(/\/+$/, '')}/v1/${payload.signal}`
  const body = await compress(payload.body, { level: constants.Z_BEST_SPEED })
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted()
    const result = await post(url, body, destination)
    if (result === 'accepted') {
      return { rows: payload.rows, rawBytes: payload.body.length, compressedBytes: body.length }
    }
    if (attempt >= maxTries) throw new SendError(result.message, result.status, result.cause)
    const waitMs = result.waitMs ?? firstWaitMs * 2 ** (attempt - 1)
    await clock.sleep(Math.min(longestWaitMs, waitMs), signal)
  }
}

interface Refusal {
  readonly message: string
  readonly status?: number
  readonly cause?: unknown
  /** The wait that the server requested. */
  readonly waitMs?: number
}

async function post(
  url: string,
  body: Uint8Array<ArrayBuffer>,
  { token, clock, fetch = globalThis.fetch, signal }: Destination,
): Promise<'accepted' | Refusal> {
  let response: Response
  try {
    response = await fetch(url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/x-protobuf',
        'content-encoding': 'gzip',
      },
      body,
      ...(signal === undefined ? {} : { signal }),
    })
  } catch (cause) {
    signal?.throwIfAborted()
    return { message: `POST ${url}: no response`, cause }
  }
  const answer = new Uint8Array(await response.arrayBuffer())
  const { status } = response
  if (response.ok) {
    const rejected = readPartialSuccess(answer)
    if (rejected === undefined) return 'accepted'
    throw new SendError(`POST ${url} rejected ${rejected.count} rows: ${rejected.message}`, status)
  }
  const message = `POST ${url} returned ${status}: ${wordsOf(answer, response.headers.get('content-type'))}`
  if (![429, 502, 503, 504].includes(status)) throw new SendError(message, status)
  const waitMs = parseRetryAfter(response.headers.get('retry-after'), clock.nowMs())
  return { message, status, ...(waitMs === undefined ? {} : { waitMs }) }
}

/**
 * `Retry-After` (RFC 9110, 10.2.3) in milliseconds from `nowMs`, seconds or a date; undefined
 * when absent or unreadable.
 */
export function parseRetryAfter(header: string | null, nowMs: number): number | undefined {
  if (header === null || header.trim() === '') return undefined
  const seconds = Number(header)
  const waitMs = Number.isNaN(seconds) ? Date.parse(header) - nowMs : seconds * 1000
  return Number.isNaN(waitMs) ? undefined : Math.max(0, waitMs)
}

/** The three export responses have one shape: partial_success = 1 { rejected = 1, error_message = 2 }. */
function readPartialSuccess(answer: Uint8Array): { count: number; message: string } | undefined {
  const outer = fieldsOf(answer)
  const partial = outer.get(1)
  if (!(partial instanceof Uint8Array)) return undefined
  const fields = fieldsOf(partial)
  const count = fields.get(1)
  const message = fields.get(2)
  if (typeof count !== 'number' || count === 0) return undefined
  return { count, message: message instanceof Uint8Array ? text(message) : '' }
}

/**
 * Varint and length-delimited fields of a message by number; empty when the bytes are no protobuf message.
 */
function fieldsOf(bytes: Uint8Array): ReadonlyMap<number, number | Uint8Array> {
  const fields = new Map<number, number | Uint8Array>()
  try {
    const reader = new BinaryReader(bytes)
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag()
      if (wireType === WireType.LengthDelimited) fields.set(field, reader.bytes())
      else if (wireType === WireType.Varint) fields.set(field, Number(reader.uint64()))
      else reader.skip(wireType, field)
    }
  } catch {
    return new Map()
  }
  return fields
}

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

/**
 * Returns the server's message: `message` = 2 of a protobuf `google.rpc.Status`, or the text itself,
 * shortened.
 */
function wordsOf(answer: Uint8Array, contentType: string | null): string {
  const message = contentType?.includes('protobuf') === true ? fieldsOf(answer).get(2) : answer
  const words = message instanceof Uint8Array ? text(message).trim() : ''
  return words === '' ? 'no explanation' : words.slice(0, 400)
}
