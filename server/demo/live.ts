// Live traffic of the demo shop: every few seconds it sends what has happened since the last time, beginning
// exactly where the history ended. A slice that could not be sent is sent with the next one. After a long
// pause (a sleeping laptop, a stopped service) only the last hour is sent, in slices of a minute, so that
// catching up is bounded and does not overload the machine.

import type { Clock } from '../core/clock.ts'
import type { Payload } from './otlp-batch.ts'
import type { LiveSlicer } from './payloads.ts'
import { openLiveSlicer } from './payloads.ts'
import type { Fetch } from './send.ts'
import { sendPayload } from './send.ts'
import type { Shop } from './shop.ts'
import { openShop } from './shop.ts'

const sliceMs = 10_000
/**
 * A request lasts up to some seconds, and a span is sent when it has ended, so slices end this long before
 * now.
 */
const settleMs = 10_000
const largestSliceMs = 60_000
const maxCatchUpMs = 3_600_000

export interface LiveOptions {
  /** Base URL of the service, such as `http://127.0.0.1:8080`. */
  readonly endpoint: string
  readonly token: string
  readonly seed: number
  /** The `nowNs` that `loadHistory` was given: incidents and counters continue from there. */
  readonly anchorNs: bigint
  /** The `historyDays` that `loadHistory` was given. */
  readonly historyDays?: number
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Called when a slice could not be sent; it is retried with the next one. */
  readonly onError: (error: unknown) => void
  readonly onSent?: (sent: { readonly rows: number; readonly toMs: number }) => void
  readonly fetch?: Fetch
}

/** Runs until the signal aborts, then resolves. Errors of the server never reject it. */
export async function runLive(options: LiveOptions): Promise<void> {
  const { clock, signal, onError } = options
  const due = openDueSlices(openShop(options))
  while (!signal.aborted) {
    try {
      await sendDue(options, due)
    } catch (error) {
      if (!signal.aborted) onError(error)
    }
    await clock.sleep(sliceMs - (clock.nowMs() % sliceMs), signal)
  }
}

async function sendDue(options: LiveOptions, due: DueSlices): Promise<void> {
  for (;;) {
    const slice = due.next(options.clock.nowMs() - settleMs)
    if (slice === undefined) return
    let rows = 0
    for (let payload = slice.payloads[0]; payload !== undefined; payload = slice.payloads[0]) {
      rows += (await sendPayload(payload, options)).rows
      slice.payloads.shift()
    }
    due.drop()
    options.onSent?.({ rows, toMs: slice.toMs })
  }
}

interface Slice {
  readonly toMs: number
  /** Payloads that are not acknowledged; acknowledged ones are removed. */
  readonly payloads: Payload[]
}

interface DueSlices {
  /**
   * Returns the slice to send, the same one until it is dropped; undefined when nothing has ended before
   * `settledMs`.
   */
  next(settledMs: number): Slice | undefined
  drop(): void
}

/** Divides the time after the anchor into slices, oldest first; no slice crosses a minute. */
function openDueSlices(shop: Shop): DueSlices {
  let fromMs = shop.anchorMinute * 60_000
  let slicer: LiveSlicer | undefined
  let open: Slice | undefined
  return {
    next(settledMs) {
      const dueMs = Math.floor(settledMs / sliceMs) * sliceMs
      if (dueMs - fromMs > maxCatchUpMs) {
        fromMs = dueMs - maxCatchUpMs
        slicer = undefined
        open = undefined
      }
      if (open !== undefined || fromMs >= dueMs) return open
      const toMs = Math.min(dueMs, (Math.floor(fromMs / largestSliceMs) + 1) * largestSliceMs)
      slicer ??= openLiveSlicer(shop, fromMs)
      open = { toMs, payloads: [...slicer.slice(fromMs, toMs)] }
      fromMs = toMs
      return open
    },
    drop() {
      open = undefined
    },
  }
}
