// Closed-loop clients of organisations that erase nothing: some send telemetry, some query a window of a
// metric. Every client waits for its response before the next request, so a blocked store is visible in the
// latencies and not in a queue of the bench.

import { setTimeout as sleep } from 'node:timers/promises'
import { historyPayloads } from '../../server/demo/payloads.ts'
import { openShop } from '../../server/demo/shop.ts'
import { expect200 } from '../peers/server.ts'
import { quantile } from '../samples.ts'
import type { Product } from './product.ts'
import { askedMetric, dayStart, historyDays } from './rows.ts'

/** One HTTP request each; rejects where it is refused. */
export interface Clients {
  readonly ingest: (() => Promise<void>) | null
  readonly query: () => Promise<void>
}

export interface Latencies {
  readonly p50Ms: number
  readonly p99Ms: number
}

interface Load {
  /** Discards the measurements so far. */
  readonly restart: () => void
  /** Latencies of the responses since the last restart. */
  readonly read: () => { ingest: Latencies | null; query: Latencies }
  readonly stop: () => Promise<void>
}

/** A pause between the requests of a query client, so that one client doesn't use a whole core. */
const pauseMs = 20
const ingestClients = 2

export function startLoad(clients: Clients): Load {
  let isStopping = false
  let ingestMs: number[] = []
  let queryMs: number[] = []
  const loop = async (ask: () => Promise<void>, record: (ms: number) => void, restMs: number) => {
    while (!isStopping) {
      const sentMs = performance.now()
      await ask()
      record(performance.now() - sentMs)
      await sleep(restMs)
    }
  }
  const { ingest } = clients
  const loops = [loop(clients.query, (ms) => queryMs.push(ms), pauseMs)]
  if (ingest !== null)
    for (let i = 0; i < ingestClients; i++) loops.push(loop(ingest, (ms) => ingestMs.push(ms), 0))
  const failed = Promise.all(loops)
  failed.catch(() => {})
  return {
    restart: () => {
      ingestMs = []
      queryMs = []
    },
    read: () => ({ ingest: ingest === null ? null : latencies(ingestMs), query: latencies(queryMs) }),
    stop: async () => {
      isStopping = true
      await failed
    },
  }
}

function latencies(samples: readonly number[]): Latencies {
  const at = (q: number) => Math.round(quantile(samples, q) * 10) / 10
  return { p50Ms: at(0.5), p99Ms: at(0.99) }
}

/** Rows in a body that an ingest client sends. */
const rowsPerBody = 500

/**
 * Clients of the product over HTTP: one organisation sends the telemetry of a shop, another queries a day of
 * a metric.
 */
export function productClients(product: Product, sender: number, reader: number, seed: number): Clients {
  const anchorNs = BigInt(dayStart(historyDays + 14).getTime()) * 1_000_000n
  const shop = openShop({ seed, anchorNs, historyDays: 1 })
  const payloads = [...historyPayloads(shop, rowsPerBody)]
  let next = 0
  const asked = new URLSearchParams({
    metric_key: askedMetric,
    range_start: dayStart(historyDays - 1).toISOString(),
    range_end: dayStart(historyDays).toISOString(),
    step_seconds: '300',
  })
  const url = `${product.address}/telemetry/series?${asked}`
  return {
    ingest: async () => {
      const payload = payloads[next++ % payloads.length]
      if (payload === undefined) throw new Error('The shop has nothing to send.')
      await expect200(`${product.address}/v1/${payload.signal}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${product.secretOf(sender)}`,
          'content-type': 'application/x-protobuf',
        },
        body: payload.body,
      })
    },
    query: () => expect200(url, { headers: { authorization: `Bearer ${product.secretOf(reader)}` } }),
  }
}
