// Refusals below the framework: what can't be read as HTTP, what comes too often on a connection.
// They have the body of every other refusal, and end the connection, because nobody knows where the
// next request would begin.

import type { ServerResponse } from 'node:http'
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { type ErrorCode, errorCatalogue } from '../../../contract/errors.ts'

/** As a response in its turn; the connection ends behind it. */
export function refuse(
  response: ServerResponse,
  code: ErrorCode,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = bodyOf(code)
  response.writeHead(errorCatalogue[code].status, { ...headers, ...headersOf(body) })
  response.end(body)
}

/** By hand, on a connection that has no response to write it to. */
export function refuseConnection(socket: Socket, code: ErrorCode): void {
  const { status } = errorCatalogue[code]
  const body = bodyOf(code)
  const lines = Object.entries(headersOf(body)).map(([name, value]) => `${name}: ${value}`)
  socket.write([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', body].join('\r\n'))
}

function bodyOf(code: ErrorCode): string {
  return JSON.stringify({ detail: errorCatalogue[code].sentence, code })
}

function headersOf(body: string) {
  return {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    connection: 'close',
  }
}
