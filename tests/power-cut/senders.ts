// The senders of the power-cut test, in a process that survives it: each posts one body after the other in a
// closed loop and records which were acknowledged, and when. No body is ever sent twice, so no row may ever
// exist twice. Takes its orders over the channel of its parent, reports the next acknowledgement immediately
// where that is requested, returns its account at the end, and ends with its parent.

import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Signal } from '../../server/telemetry/schema/tables.ts'
import { bodyOf } from './bodies.ts'

export interface SenderOrders {
  readonly address: string
  readonly senders: readonly Sender[]
  /** Pause between a response and the next body; none where absent. */
  readonly pauseMs?: number
}

interface Sender {
  readonly organisation: number
  readonly secret: string
  readonly signal: Signal
}

export interface SenderAccount extends Omit<Sender, 'secret'> {
  /** Bodies have the numbers from 0 to this, exclusive. */
  readonly sent: number
  /** Bodies answered with 200, and when, milliseconds since the epoch. */
  readonly acknowledged: readonly { readonly body: number; readonly atMs: number }[]
  /** Number of responses by other status; 0 is a broken connection. */
  readonly otherwise: Readonly<Record<number, number>>
}

const agent = new Agent({ keepAlive: true })
const accounts: SenderAccount[] = []
const loops: Promise<void>[] = []
let hasEnded = false
let isAwaited = false

process.on('message', (message: SenderOrders | 'next' | 'account') => {
  if (message === 'account') {
    hasEnded = true
    void Promise.all(loops).then(() => process.send?.(accounts))
  } else if (message === 'next') isAwaited = true
  else for (const sender of message.senders) loops.push(send(message, sender))
})
process.on('disconnect', () => process.exit(0))

async function send({ address, pauseMs }: SenderOrders, { secret, ...sender }: Sender): Promise<void> {
  const acknowledged: { body: number; atMs: number }[] = []
  const otherwise: Record<number, number> = {}
  const at = accounts.push({ ...sender, sent: 0, acknowledged, otherwise }) - 1
  for (let body = 0; !hasEnded; body++) {
    accounts[at] = { ...sender, sent: body + 1, acknowledged, otherwise }
    const status = await post(`${address}/v1/${sender.signal}`, secret, bodyOf(sender.signal, 'fresh', body))
    if (status === 200) {
      acknowledged.push({ body, atMs: Date.now() })
      if (isAwaited) process.send?.('acknowledged')
      isAwaited = false
      if (pauseMs !== undefined) await sleep(pauseMs)
    } else {
      otherwise[status] = (otherwise[status] ?? 0) + 1
      await sleep(50)
    }
  }
}

/** The status of the response; 0 where there was none. */
function post(url: string, secret: string, body: Buffer): Promise<number> {
  return new Promise((resolve) => {
    const headers = {
      authorization: `Bearer ${secret}`,
      'content-type': 'application/x-protobuf',
      'content-length': body.length,
    }
    const sent = request(url, { method: 'POST', agent, headers }, (answer) => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode ?? 0))
      answer.on('error', () => resolve(0))
    })
    sent.on('error', () => resolve(0))
    sent.end(body)
  })
}
