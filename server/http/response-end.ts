// Reports the end of a request: its response was passed to the system, or the connection has closed before.
// Node reports a closed connection to a response only during that response's turn, so requests that were
// pipelined behind it get the report here from the connection itself. Each connection has one listener,
// however many requests it has.

import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'

type Over = (isAnswered: boolean) => void

const openOn = new WeakMap<Socket, Set<Over>>()

/** Calls `over` once, with whether the whole response was passed to the system. */
export function whenResponseEnds(request: FastifyRequest, reply: FastifyReply, over: Over): void {
  const { socket } = request.raw
  const open = openOn.get(socket) ?? watch(socket)
  const once: Over = (isAnswered) => {
    if (open.delete(once)) over(isAnswered)
  }
  open.add(once)
  reply.raw.once('close', () => once(reply.raw.writableFinished))
  if (socket.destroyed) once(false)
}

/** Aborts when the connection closes before the response was passed to the system. */
export function goneSignal(request: FastifyRequest, reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  whenResponseEnds(request, reply, (isAnswered) => {
    if (!isAnswered) gone.abort()
  })
  return gone.signal
}

function watch(socket: Socket): Set<Over> {
  const open = new Set<Over>()
  openOn.set(socket, open)
  socket.once('close', () => {
    for (const once of [...open]) once(false)
  })
  return open
}
