// When a request is over: its answer is handed over, or the connection has closed before. Node tells a
// response that its connection closed only while it is that response's turn, so requests that were
// pipelined behind it are told here by the connection itself. Each connection has one listener, however
// many requests it carries.

import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'

type Over = (isAnswered: boolean) => void

const openOn = new WeakMap<Socket, Set<Over>>()

/** Calls `over` once, and says whether the answer was handed over whole. */
export function whenOver(request: FastifyRequest, reply: FastifyReply, over: Over): void {
  const { socket } = request.raw
  const open = openOn.get(socket) ?? watch(socket)
  const once: Over = (isAnswered) => {
    if (open.delete(once)) over(isAnswered)
  }
  open.add(once)
  reply.raw.once('close', () => once(reply.raw.writableFinished))
  if (socket.destroyed) once(false)
}

function watch(socket: Socket): Set<Over> {
  const open = new Set<Over>()
  openOn.set(socket, open)
  socket.once('close', () => {
    for (const once of [...open]) once(false)
  })
  return open
}
