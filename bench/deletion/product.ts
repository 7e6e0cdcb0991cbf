// The product as benches use it: a service in its own process on a temporary folder, 64 organisations with a
// placement each, and HTTP for everything that is measured. Statements through a separate channel fill in
// rows and make the baselines.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import nodeFlags from '../../scripts/node-flags.json' with { type: 'json' }
import { organisationCount, tenantOf } from './rows.ts'
import type { Answer, Ready } from './service-child.ts'

export interface Product {
  readonly address: string
  readonly pid: number
  /** The folder of the engine's tables. */
  readonly folder: string
  readonly secretOf: (organisation: number) => string
  /** Runs a statement in the engine, beside the service; returns rows by column name. */
  readonly rows: <T>(sql: string) => Promise<T[]>
  readonly stop: () => Promise<void>
  /** Ends the service as `kill -9` does, and waits until it has exited. */
  readonly kill: () => Promise<void>
}

interface ProductOptions {
  /** {@link organisationCount} where absent; an older folder keeps its organisations. */
  readonly organisations?: number
  /** Settings in addition to those of this process. */
  readonly env?: Readonly<Record<string, string>>
  /**
   * Called with each line that the service writes to standard error; where absent, the lines are passed on.
   */
  readonly onLine?: (line: string) => void
  /**
   * Seconds after which the service is killed if it isn't ready; a second in which this process was blocked
   * counts as one.
   */
  readonly readyWithinS?: number
}

const secretOf = (organisation: number): string =>
  `bench-secret-of-organisation-${organisation}-`.padEnd(40, 'x')

export async function startProduct(dataDir: string, options: ProductOptions = {}): Promise<Product> {
  const program = fileURLToPath(new URL('service-child.ts', import.meta.url))
  const secrets = Array.from({ length: options.organisations ?? organisationCount }, (_, i) => secretOf(i))
  const { onLine, readyWithinS = Number.POSITIVE_INFINITY } = options
  const child = fork(program, [dataDir, ...secrets], {
    execArgv: nodeFlags,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'inherit', onLine === undefined ? 'inherit' : 'pipe', 'ipc'],
  })
  if (onLine !== undefined && child.stderr !== null)
    createInterface({ input: child.stderr }).on('line', onLine)
  let waitedS = 0
  const watch = setInterval(() => ++waitedS > readyWithinS && child.kill('SIGKILL'), 1000)
  const waiting = new Map<number, (answer: Answer) => void>()
  const address = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code, signal) => reject(new Error(`The service ended with ${code ?? signal}.`)))
    child.on('message', (message: Answer | Ready) => {
      if ('address' in message) resolve(message.address)
      else waiting.get(message.id)?.(message)
    })
  }).finally(() => clearInterval(watch))
  const end = async (how: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(how)
    await ended
  }
  child.once('exit', (code, signal) => {
    for (const [id, answer] of waiting)
      answer({ id, lines: '', error: `The service ended: ${code ?? signal}` })
  })
  let next = 0
  return {
    address,
    pid: pidOf(child),
    folder: join(dataDir, 'telemetry', 'engine'),
    secretOf,
    rows: async <T>(sql: string) => {
      const id = next++
      const answered = new Promise<Answer>((resolve) => waiting.set(id, resolve))
      child.send({ id, sql })
      const { lines, error } = await answered
      waiting.delete(id)
      if (error !== null) throw new Error(`${error}\n${sql.slice(0, 500)}`)
      return lines === ''
        ? []
        : lines
            .trimEnd()
            .split('\n')
            .map((line) => JSON.parse(line) as T)
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  }
}

function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error('The service has no process.')
  return child.pid
}

/** Waits until the engine has had no merge or mutation for two seconds, at most `limitMs`. */
export async function settle(product: Product, limitMs = 240_000): Promise<void> {
  const untilMs = performance.now() + limitMs
  for (let quiet = 0; quiet < 4 && performance.now() < untilMs; ) {
    const [busy] = await product.rows<{ n: string | number }>('SELECT count() AS n FROM system.merges')
    quiet = Number(busy?.n) === 0 ? quiet + 1 : 0
    await sleep(500)
  }
}

/** Half-open bounds of event time; absent for everything. */
export interface Range {
  readonly start: Date
  readonly end: Date
}

const giveUpMs = 300_000

/** Requests an erasure over HTTP and polls until it is completed. */
export async function eraseOverHttp(
  product: Product,
  organisation: number,
  range: Range | null,
): Promise<void> {
  const headers = {
    authorization: `Bearer ${product.secretOf(organisation)}`,
    'content-type': 'application/json',
  }
  const scope =
    range === null
      ? { scope: 'all' }
      : { scope: 'range', range_start: range.start.toISOString(), range_end: range.end.toISOString() }
  const path = `${product.address}/usage/storage/deletions`
  const body = JSON.stringify({ ...scope, confirm: tenantOf(organisation) })
  const sentMs = performance.now()
  const answer = await fetch(path, { method: 'POST', headers, body })
  const text = await answer.text()
  if (answer.status !== 202) throw new Error(`The deletion returned ${answer.status}: ${text}`)
  let request: { readonly request_id: string; readonly status: string } = JSON.parse(text)
  while (request.status !== 'completed') {
    if (performance.now() - sentMs > giveUpMs) throw new Error(`Not completed: ${JSON.stringify(request)}`)
    await sleep(10)
    request = JSON.parse(await (await fetch(`${path}/${request.request_id}`, { headers })).text())
  }
}
