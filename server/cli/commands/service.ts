// `lethe serve` and `lethe demo`: the commands that are the service. Definitions only; what they do is
// loaded when one is called.

import type { Command } from 'commander'
import { withExamples } from './help.ts'
import { config } from './operator.ts'

/** Commands that go on when nobody reads their output any more. */
export const serviceCommands: readonly string[] = ['serve', 'demo']

export function addServiceCommands(program: Command): void {
  withExamples(
    program
      .command('serve')
      .description('run the service (settings: LETHE_* environment variables)')
      .option('--json', 'say in one line of JSON where it listens, and the owner token of a first start')
      .action(async (options) => (await import('../serve.ts')).serveUntilStopped(await config(), options)),
    'lethe serve',
    'LETHE_PORT=9090 LETHE_DATA_DIR=/srv/lethe lethe serve',
  )
  withExamples(
    program
      .command('demo')
      .description('run the service with a small shop’s telemetry of two weeks, and keep it alive')
      .action(async () => (await import('../demo.ts')).demo(process.env)),
    'lethe demo',
    'LETHE_PORT=9090 lethe demo',
  )
}
