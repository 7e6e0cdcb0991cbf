// Debian's Prometheus as a process of a test, with its own folder and port. A test that needs it fails where
// it is not installed.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'

export interface PrometheusProcess {
  readonly process: ChildProcess
  readonly configPath: string
  /** Its address without a path. */
  readonly api: string
  /** Its log output. */
  output: string
}

/**
 * Starts one in a folder that doesn't exist yet; it may not respond yet. Throws where it is not installed.
 */
export async function startPrometheus(
  folder: string,
  config: string,
  ...flags: readonly string[]
): Promise<PrometheusProcess> {
  mkdirSync(folder)
  const configPath = join(folder, 'prometheus.yml')
  writeFileSync(configPath, config)
  const port = await freePort()
  const child = spawn('prometheus', [
    `--config.file=${configPath}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    ...flags,
  ])
  try {
    await once(child, 'spawn')
  } catch (cause) {
    const message =
      'This test needs Prometheus, and there is no program prometheus. Debian: apt-get install prometheus'
    throw new Error(message, { cause })
  }
  const started = { process: child, configPath, api: `http://127.0.0.1:${port}`, output: '' }
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      started.output += chunk.toString()
    })
  }
  return started
}

export async function stopPrometheus({ process: child }: PrometheusProcess): Promise<void> {
  if (child.exitCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

/** A port that is free now. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  return typeof address === 'object' && address !== null ? address.port : assert.fail('no port')
}
