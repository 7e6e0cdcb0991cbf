// Prevents needless stacks of errors. Node creates an error for each request of a connection that ends before
// its response, and formats its stack, which nobody reads. A client that pipelines and closes repeatedly kept
// half of the event loop busy with that. So errors that are created while the end of a connection is handled
// have no stack.

import type { Socket } from 'node:net'

const usualLimit = Error.stackTraceLimit

/** Call it as a listener of `connection`, after Node has added its own listeners. */
export function closeWithoutStacks(socket: Socket): void {
  socket.prependListener('close', () => {
    Error.stackTraceLimit = 0
  })
  socket.on('close', () => {
    Error.stackTraceLimit = usualLimit
  })
}
