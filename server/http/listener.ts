// The HTTP/1.1 server under the framework, with all its limits: how long a request may take to arrive, how
// large its head may be, how long an idle connection is kept. Its own refusals have the body of every other
// refusal.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ErrorCode } from '../../contract/errors.ts'
import type { Connections } from './limits/connections.ts'
import { refuse, refuseConnection } from './limits/raw-refusal.ts'

type Handler = (request: IncomingMessage, response: ServerResponse) => void

const limits = {
  /**
   * For the head of a request, from the first byte or from the connection: a sender has it ready. Ends
   * connections that send nothing.
   */
  headersTimeout: 10_000,
  /**
   * For a whole request: long enough for a telemetry batch over a slow uplink, short enough not to collect
   * sockets.
   */
  requestTimeout: 60_000,
  /** Interval in which the two limits above are checked. A check walks over all open connections. */
  connectionsCheckingInterval: 5_000,
  /**
   * Longer than load balancers keep an idle connection (60 s), so that they close it and no request is lost.
   */
  keepAliveTimeout: 72_000,
  /** Bytes of a head. A token has at most 512; proxies and trace context add theirs. */
  maxHeaderSize: 16 * 1024,
  /** We refuse it with a body of our own. */
  requireHostHeader: false,
} as const

/**
 * After this many requests a client must reconnect, which distributes long-lived senders over the processes
 * behind a load balancer and limits what one connection can accumulate. It costs a sender one handshake in
 * many.
 */
const requestsPerConnection = 10_000

/** Codes of refusals by the codes of Node and its parser; anything else is `bad_request`. */
const unreadable: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'body_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

export function createListener(handler: Handler, connections: Connections): Server {
  const server = createServer(limits)
  server.maxRequestsPerSocket = requestsPerConnection
  connections.watch(server)
  const serve = (request: IncomingMessage, response: ServerResponse, before = () => {}) =>
    connections.inTurn(request, response, () => {
      if (request.httpVersion === '1.1' && request.headers.host === undefined) {
        refuse(response, 'bad_request')
        return
      }
      before()
      handler(request, response)
    })
  server.on('request', (request, response) => serve(request, response))
  server.on('checkContinue', (request, response) => serve(request, response, () => response.writeContinue()))
  server.on('checkExpectation', (request, response) =>
    connections.inTurn(request, response, () => refuse(response, 'expectation_failed')),
  )
  return server
}

/** What can't be parsed as HTTP never becomes a request, so its response is written to the socket. */
export function answerUnreadable(
  error: Error & { code?: string },
  socket: Socket,
  connections: Connections,
): void {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0) {
    endSilent(socket)
    return
  }
  if (error.code !== 'ECONNRESET' && socket.writable && connections.canAnswer(socket)) {
    refuseConnection(socket, unreadable[error.code ?? ''] ?? 'bad_request')
  }
  socket.destroy()
}

/**
 * Ends a connection that has sent nothing, without a response: browsers open connections before they need
 * them, and would take a refusal for the response to their next request. If the event loop was busy, a
 * request may have arrived and not been read; after two turns it has been read, and is served.
 */
function endSilent(socket: Socket): void {
  setImmediate(() => {
    setImmediate(() => {
      if (socket.bytesRead === 0) socket.destroy()
    })
  })
}
