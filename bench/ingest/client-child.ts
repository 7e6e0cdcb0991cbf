// Posts bodies over loopback from a separate process, with one keep-alive socket per client. Closed loop
// without a rate. With a rate, requests are sent on schedule whatever the responses do, so that a pause of
// the service shows in the latencies of all requests that waited. Reads its orders as JSON from standard
// input and prints its measurements as JSON.

import { readFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { urlToHttpOptions } from 'node:url'
import { ask } from '../http-client.ts'

export interface ClientOrders {
  readonly address: string
  readonly path: string
  readonly secrets: readonly string[]
  readonly clients: number
  /** Files with one body each. */
  readonly bodies: readonly string[]
  readonly seconds: number
  /** Requests a second; null for as fast as responses arrive. */
  readonly perSecond: number | null
}

export interface ClientReport {
  readonly seconds: number
  /** How often each body got a 200. */
  readonly accepted: readonly number[]
  readonly refused: number
  readonly latenciesMs: readonly number[]
}

const orders: ClientOrders = JSON.parse(await text(process.stdin))
const bodies = orders.bodies.map((path) => readFileSync(path))
const agent = new Agent({ keepAlive: true, maxSockets: orders.clients })
const target = urlToHttpOptions(new URL(orders.path, orders.address))
const accepted = bodies.map(() => 0)
const latenciesMs: number[] = []
let [next, refused] = [0, 0]

async function postNext(client: number, sinceMs: number): Promise<void> {
  const at = next++ % bodies.length
  const body = bodies[at] ?? Buffer.alloc(0)
  const headers = {
    authorization: `Bearer ${orders.secrets[client % orders.secrets.length]}`,
    'content-type': 'application/x-protobuf',
    'content-length': body.length,
  }
  const { status, text: said } = await ask({ ...target, method: 'POST', agent, headers }, body)
  if (status === 200) {
    accepted[at] = (accepted[at] ?? 0) + 1
    latenciesMs.push(performance.now() - sinceMs)
  } else if (status === 503) {
    refused++
    await sleep(100)
  } else throw new Error(`returned ${status}: ${said}`)
}

async function closedLoop(client: number, untilMs: number): Promise<void> {
  while (performance.now() < untilMs) await postNext(client, performance.now())
}

async function paced(perSecond: number, startMs: number, untilMs: number): Promise<void> {
  const running: Promise<void>[] = []
  for (let sent = 0; ; sent++) {
    const dueMs = startMs + (sent / perSecond) * 1000
    if (dueMs > untilMs) break
    const waitMs = dueMs - performance.now()
    if (waitMs > 1) await sleep(waitMs)
    running.push(postNext(sent, dueMs))
  }
  await Promise.all(running)
}

const startMs = performance.now()
const untilMs = startMs + orders.seconds * 1000
if (orders.perSecond === null)
  await Promise.all(Array.from({ length: orders.clients }, (_, client) => closedLoop(client, untilMs)))
else await paced(orders.perSecond, startMs, untilMs)
const report: ClientReport = {
  seconds: (performance.now() - startMs) / 1000,
  accepted,
  refused,
  latenciesMs,
}
process.stdout.write(`${JSON.stringify(report)}\n`)
agent.destroy()
