// Runs command lines one after the other in one process: each has its own environment, standard input, output
// and exit code, as in a process of its own, and has ended when it has closed everything that would keep a
// process from ending. tests/scenario/command-line.ts starts it.

import { Readable } from 'node:stream'
import { runCommandLine } from '../../server/cli/run.ts'
import { systemClock } from '../../server/core/clock.ts'

export interface Order {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly words: readonly string[]
  readonly input: string
}

/** What the command would keep a process of its own running for, after it should have ended. */
export interface LeftOpen {
  readonly leftOpen: readonly string[]
}

/** Far longer than closing takes on a busy machine. */
const closingTries = 1000
const closingPollMs = 10

process.umask(0o077)

process.on('message', async ({ env, input, words }: Order) => {
  // The channel to the parent.
  const own = process.getActiveResourcesInfo().length
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
  const leftOpen = await closed(own)
  if (leftOpen.length > 0) process.send?.({ leftOpen } satisfies LeftOpen)
  else process.send?.({ code: process.exitCode, out: printed.stdout.trim(), err: printed.stderr.trim() })
  process.exitCode = 0
})

/** Waits until no more than `own` resources are open; returns what is open where that takes too long. */
async function closed(own: number): Promise<readonly string[]> {
  for (let tries = 0; ; tries++) {
    const open = process.getActiveResourcesInfo()
    if (open.length <= own) return []
    if (tries === closingTries) return open
    await systemClock.sleep(closingPollMs)
  }
}
