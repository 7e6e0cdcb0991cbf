// The clients of every store, in a separate process: each is one sender, which sends its bodies oldest first
// and waits for each response before the next (a closed loop), so that the samples of a series arrive in
// order. All bodies are prepared, in memory or for PostgreSQL in files, before the first is sent. Uses the
// IPC channel of its parent.

import { mkdirSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { urlToHttpOptions } from 'node:url'
import { ask } from '../../http-client.ts'
import type { Target } from '../../peers/ingest-store.ts'
import { openSession } from '../../peers/postgresql.ts'
import { bodiesOf, type Format, formats } from './bodies.ts'
import type { Shape } from './points.ts'

export interface LoadOrders {
  readonly shape: Shape
  readonly format: Format
  readonly target: Target
}

/** Rounds, half-open. */
export interface Span {
  readonly from: number
  readonly to: number
}

export interface LoadReport {
  readonly seconds: number
  readonly refused: number
  readonly latenciesMs: readonly number[]
}

interface Sender {
  /** Returns false where the body was refused temporarily. */
  readonly send: (round: number) => Promise<boolean>
  readonly close: () => void
}

process.once('message', (orders: LoadOrders) => {
  const senders = Array.from({ length: orders.shape.senders }, (_, sender) => openSender(orders, sender))
  process.on('message', (span: Span) => {
    void sendAll(senders, span).then((report) => process.send?.(report))
  })
  process.on('disconnect', () => {
    for (const { close } of senders) close()
  })
  process.send?.('ready')
})

async function sendAll(senders: readonly Sender[], { from, to }: Span): Promise<LoadReport> {
  const latenciesMs: number[] = []
  let refused = 0
  const startMs = performance.now()
  await Promise.all(
    senders.map(async ({ send }) => {
      for (let round = from; round < to; round++) {
        const sentMs = performance.now()
        while (!(await send(round))) {
          refused++
          await sleep(50)
        }
        latenciesMs.push(performance.now() - sentMs)
      }
    }),
  )
  return { seconds: (performance.now() - startMs) / 1000, refused, latenciesMs }
}

function openSender({ shape, format, target }: LoadOrders, sender: number): Sender {
  const bodies = [...bodiesOf(format, shape, sender)]
  if ('url' in target) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const headers = { ...formats[format], ...target.headers }
    const to = { ...urlToHttpOptions(new URL(target.url)), method: 'POST', agent }
    const send = async (round: number) => {
      const body = bodies[round] ?? Buffer.alloc(0)
      const answer = await ask({ ...to, headers: { ...headers, 'content-length': body.length } }, body)
      if (answer.status >= 200 && answer.status < 300) return true
      if (answer.status === 503) return false
      throw new Error(`returned ${answer.status}: ${answer.text.slice(0, 300)}`)
    }
    return { send, close: () => agent.destroy() }
  }
  const folder = join(target.folder, `sender-${sender}`)
  mkdirSync(folder)
  for (const [round, body] of bodies.entries()) writeFileSync(join(folder, String(round)), body)
  const session = openSession(target.psql)
  const send = async (round: number) => {
    await session.run(`\\copy points FROM '${join(folder, String(round))}' WITH (FORMAT binary)`)
    return true
  }
  return { send, close: () => session.close() }
}
