// `lethe migrate`: moves the control plane to another database. The definition only; the command loads its
// code when it runs.

import type { Command } from 'commander'
import { withExamples, withJson } from './help.ts'

export function addMigrateCommand(program: Command): void {
  const migrate = program.command('migrate').description('move what the service stores to another database')
  withExamples(
    withJson(migrate.command('control'))
      .description(
        'move the control plane of a stopped service into an empty database; a move that was interrupted continues',
      )
      .option('--from <URL>', 'the database that is left (default: LETHE_CONTROL_URL)')
      .requiredOption('--to <URL>', 'the empty database; leave its password to PGPASSFILE')
      .option('--with-broken-chains', 'move chains that are broken, as they are')
      .action(async (options) =>
        (await import('../migrate/control.ts')).migrateControl(process.env, options),
      ),
    'lethe migrate control --to postgres://lethe@db.example/lethe',
    'lethe migrate control --from postgres://lethe@db.example/lethe --to sqlite:/var/lib/lethe/control.db',
  )
}
