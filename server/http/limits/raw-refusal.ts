// Refusals below the framework: what can't be parsed as HTTP, and too many requests on a connection. They
// have the body of every other refusal, and end the connection, because the start of the next request is
// unknown.

import type { ServerResponse } from 'node:http'
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { type ErrorCode, errorCatalogue } from '../../../contract/errors.ts'

/** Sends the refusal as a response in its turn; the connection ends after it. */
export function refuse(
  response: ServerResponse,
  code: ErrorCode,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = bodyOf(code)
  response.writeHead(errorCatalogue[code].status, { ...headers, ...headersOf(body) })
  response.end(body)
}

/** Writes the refusal to a connection that has no response object. */
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
