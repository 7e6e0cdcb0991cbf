// Runs command lines one after the other in one process: each has its own environment, standard input, output
// and exit code, as in a process of its own. tests/scenario/command-line.ts starts it.

import { Readable } from 'node:stream'
import { runCommandLine } from '../../server/cli/run.ts'

export interface Order {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly words: readonly string[]
  readonly input: string
}

process.umask(0o077)

process.on('message', async ({ env, input, words }: Order) => {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
  Object.defineProperty(process, 'stdin', {
    value: Readable.from(input === '' ? [] : [Buffer.from(input)]),
    configurable: true,
  })
  const printed = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    process[name].write = (chunk: string | Uint8Array) => {
      printed[name] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
      return true
    }
  }
  process.exitCode = 0
  await runCommandLine(words)
  process.send?.({ code: process.exitCode, out: printed.stdout.trim(), err: printed.stderr.trim() })
  process.exitCode = 0
})
