// `lethe serve` and `lethe demo`: the commands that run the service. Definitions only; a command loads its
// code when it runs.

import type { Command } from 'commander'
import { withExamples } from './help.ts'
import { config } from './operator.ts'

/** Commands that continue after the reader of their output has closed it. */
export const serviceCommands: readonly string[] = ['serve', 'demo']

export function addServiceCommands(program: Command): void {
  withExamples(
    program
      .command('serve')
      .description('run the service (settings: LETHE_* environment variables)')
      .option('--json', 'print one line of JSON: the addresses, and at the first start the owner token')
      .action(async (options) => (await import('../serve.ts')).serveUntilStopped(await config(), options)),
    'lethe serve',
    'LETHE_PORT=9090 LETHE_DATA_DIR=/srv/lethe lethe serve',
  )
  withExamples(
    program
      .command('demo')
      .description('run the service with two weeks of telemetry of a small shop, and live traffic')
      .action(async () => (await import('../demo.ts')).demo(process.env)),
    'lethe demo',
    'LETHE_PORT=9090 lethe demo',
  )
}
