// The service as the ingest benches use it: in its own process, so that senders and server don't share an
// event loop, on an empty folder, with organisations whose secrets are known. It ends with this process.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import nodeFlags from '../../scripts/node-flags.json' with { type: 'json' }

export interface Service {
  readonly pid: number
  readonly address: string
  /** Owner tokens, one per organisation. */
  readonly secrets: readonly string[]
  /** Ends it by SIGTERM and waits until it has exited; does nothing where it has exited already. */
  readonly stop: () => Promise<void>
}

/** Resolves when the service is ready. */
export async function startService(
  dataDir: string,
  organisations: number,
  env: Readonly<Record<string, string>> = {},
): Promise<Service> {
  const secrets = Array.from({ length: organisations }, (_, i) =>
    `bench-secret-of-organisation-${i}-`.padEnd(40, 'x'),
  )
  const program = fileURLToPath(new URL('service-child.ts', import.meta.url))
  const child = spawn(process.execPath, [...nodeFlags, program, dataDir, ...secrets], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  })
  const kill = () => child.kill('SIGKILL')
  process.on('exit', kill)
  const ended = once(child, 'exit')
  const [line] = await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    ended.then(([code, signal]) => {
      throw new Error(`The service ended with ${code ?? signal}.`)
    }),
  ])
  const { address }: { address: string } = JSON.parse(String(line))
  if (child.pid === undefined) throw new Error('The service has no process.')
  return {
    pid: child.pid,
    address,
    secrets,
    stop: async () => {
      process.off('exit', kill)
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
      await ended
    },
  }
}
