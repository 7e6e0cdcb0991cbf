// Sends the two weeks of history to the service's own OTLP endpoints, oldest first, a few bodies at a time.
// Bodies are generated only when a sender is free, so only a few bodies are in memory however slow the server
// is. The first refusal stops all senders and is thrown; a partly loaded history is never reported as loaded.

import type { Clock } from '../core/clock.ts'
import type { Payload } from './otlp-batch.ts'
import { estimateHistoryRows, historyPayloads } from './payloads.ts'
import type { Fetch } from './send.ts'
import { sendPayload } from './send.ts'
import { openShop } from './shop.ts'

export interface LoadProgress {
  /** Rows acknowledged by the server. */
  readonly doneRows: number
  /** An estimate until the end, when it equals `doneRows`; never less than `doneRows`. */
  readonly totalRows: number
  readonly elapsedMs: number
}

interface LoadOptions {
  /** Base URL of the service, such as `http://127.0.0.1:8080`. */
  readonly endpoint: string
  readonly token: string
  readonly seed: number
  /** End of the history, rounded down to the minute; `runLive` needs the same value. */
  readonly nowNs: bigint
  readonly clock: Clock
  readonly fetch?: Fetch
  readonly onProgress?: (progress: LoadProgress) => void
  /** 14 where absent. */
  readonly historyDays?: number
  /** Bodies sent at the same time; 3 where absent. */
  readonly concurrency?: number
  /** Approximate number of rows of a body; 10,000 where absent. */
  readonly rowsPerBody?: number
  readonly signal?: AbortSignal
}

interface LoadResult {
  readonly rows: number
  readonly bodies: number
  readonly rawBytes: number
  readonly compressedBytes: number
  readonly elapsedMs: number
}

/**
 * Resolves when the whole history is acknowledged. Throws `SendError` when the server refuses a body, and the
 * signal's reason when it aborts; bodies that were sent before stay stored.
 */
export async function loadHistory(options: LoadOptions): Promise<LoadResult> {
  const { clock, onProgress, concurrency = 3 } = options
  const shop = openShop({ ...options, anchorNs: options.nowNs })
  const startMs = clock.nowMs()
  const elapsedMs = (): number => Math.max(0, clock.nowMs() - startMs)
  const estimated = estimateHistoryRows(shop)
  const total = { rows: 0, bodies: 0, rawBytes: 0, compressedBytes: 0 }

  await sendAll(historyPayloads(shop, options.rowsPerBody), concurrency, options, (sent) => {
    total.rows += sent.rows
    total.bodies++
    total.rawBytes += sent.rawBytes
    total.compressedBytes += sent.compressedBytes
    onProgress?.({
      doneRows: total.rows,
      totalRows: Math.max(estimated, total.rows),
      elapsedMs: elapsedMs(),
    })
  })
  onProgress?.({ doneRows: total.rows, totalRows: total.rows, elapsedMs: elapsedMs() })
  return { ...total, elapsedMs: elapsedMs() }
}

async function sendAll(
  payloads: Iterator<Payload, void, undefined>,
  concurrency: number,
  options: LoadOptions,
  onSent: (sent: Awaited<ReturnType<typeof sendPayload>>) => void,
): Promise<void> {
  const failure = new AbortController()
  const signal =
    options.signal === undefined ? failure.signal : AbortSignal.any([options.signal, failure.signal])
  const destination = { ...options, signal }
  const sender = async (): Promise<void> => {
    for (let next = payloads.next(); !next.done; next = payloads.next()) {
      onSent(await sendPayload(next.value, destination))
    }
  }
  const senders = Array.from({ length: Math.max(1, concurrency) }, () =>
    sender().catch((error: unknown) => {
      failure.abort(error)
      throw error
    }),
  )
  // `Promise.all` throws the first failure; waiting for the others leaves no HTTP request open.
  try {
    await Promise.all(senders)
  } finally {
    await Promise.allSettled(senders)
  }
}
