// Node makes an error for each request of a connection that ends before its answer, and formats its stack,
// which nobody reads. A client that pipelines and closes, again and again, kept half of the event loop busy
// with that. So errors that are made while the end of a connection is handled have no stack.

import type { Socket } from 'node:net'

const usualLimit = Error.stackTraceLimit

/** To be called when Node has added its own listeners, as a listener of `connection` is. */
export function closeWithoutStacks(socket: Socket): void {
  socket.prependListener('close', () => {
    Error.stackTraceLimit = 0
  })
  socket.on('close', () => {
    Error.stackTraceLimit = usualLimit
  })
}
