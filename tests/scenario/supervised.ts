// The service under its supervisor, as `lethe serve` runs it: in processes of its own, one after the other on
// the same data folder.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { waitFor } from '../wait-for.ts'

const launcherHere = fileURLToPath(new URL('../../scripts/lethe.mjs', import.meta.url))

/** What the service prints when it has started. The token is null at every start but the first. */
interface Started {
  readonly address: string
  readonly token: string | null
}

export interface SupervisedService {
  /** Process id of the supervisor. */
  readonly pid: number | undefined
  /** What the current process printed when it had started. */
  started(): Started
  /** What was printed to standard error. */
  said(): string
  /** Reads standard output up to a line with the text. */
  lineWith(text: string): Promise<string>
  send(
    method: string,
    path: string,
    secret: string | null,
    json?: unknown,
  ): Promise<{ readonly status: number; readonly text: string }>
  /** Resolves when the supervisor has started the service again, and it is ready. */
  restarted(): Promise<void>
  /** Kills the supervisor; the service ends with it. */
  stop(): void
  /** Resolves when the last process has ended. */
  readonly outputEnded: Promise<unknown>
}

/**
 * Starts the service with settings by their environment variables, and waits until it is ready. `launcher` is
 * scripts/lethe.mjs, of this clone or of a copy.
 */
export async function superviseService(
  settings: Readonly<Record<string, string>>,
  launcher = launcherHere,
): Promise<SupervisedService> {
  const supervisor = spawn(process.execPath, [launcher, 'serve', '--json'], {
    env: { ...process.env, LETHE_PORT: '0', LETHE_ENGINE_MEMORY_MB: '1024', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  supervisor.stderr.on('data', (chunk) => {
    said += chunk
  })
  const outputEnded = once(supervisor.stdout, 'end')
  const lines = createInterface({ input: supervisor.stdout })[Symbol.asyncIterator]()
  const lineWith = async (text: string): Promise<string> => {
    for (;;) {
      const { value, done } = await lines.next()
      if (done) return assert.fail(`The output ended before "${text}". ${said}`)
      if (value.includes(text)) return value
    }
  }
  let started: Started | undefined
  const send: SupervisedService['send'] = async (method, path, secret, json) => {
    const headers = {
      ...(secret !== null && { authorization: `Bearer ${secret}` }),
      ...(json !== undefined && { 'content-type': 'application/json' }),
    }
    const body = json === undefined ? {} : { body: JSON.stringify(json) }
    const answer = await fetch(`${started?.address}${path}`, { method, headers, ...body })
    return { status: answer.status, text: await answer.text() }
  }
  const listening = async () => {
    started = JSON.parse(await lineWith('"console_link"')) as Started
    await waitFor(
      () => send('GET', '/readyz', null),
      ({ status }) => status === 200,
    )
  }
  await listening()
  return {
    pid: supervisor.pid,
    started: () => started ?? assert.fail('it has not started'),
    said: () => said,
    lineWith,
    send,
    async restarted() {
      await lineWith('"restarts":{"crashed":1')
      await listening()
    },
    stop: () => supervisor.kill('SIGKILL'),
    outputEnded,
  }
}
