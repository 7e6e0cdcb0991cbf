// The heartbeat of the service for the supervisor that started it (scripts/supervisor.mjs), once a second. It
// is sent from the event loop, so that a blocked loop sends none. A service stops when its supervisor has
// ended, because no other service could start while this one has the data folder.

import type { Clock } from '../core/clock.ts'

const intervalMs = 1000

/** The side of a process that has a channel to its parent; `send` is absent where there is none. */
interface Channel {
  readonly connected: boolean
  send?(message: unknown, done: (error: Error | null) => void): unknown
  once(event: 'disconnect', listener: () => void): unknown
}

/**
 * Sends signs of life until the channel closes, then calls `onOrphaned`. Does nothing where no supervisor
 * started the process.
 */
export async function sendSignsOfLife(channel: Channel, clock: Clock, onOrphaned: () => void): Promise<void> {
  if (channel.send === undefined) return
  const gone = new AbortController()
  channel.once('disconnect', () => gone.abort())
  while (channel.connected && !gone.signal.aborted) {
    // The next one waits until this one is written: a supervisor that was stopped must not fill memory.
    await new Promise((resolve) => channel.send?.('alive', resolve))
    await clock.sleep(intervalMs, gone.signal)
  }
  onOrphaned()
}
