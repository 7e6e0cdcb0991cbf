// `lethe backup`: creating, listing, removing and restoring backups. Definitions only; a command loads its
// code when it runs.

import { type Command, Option } from 'commander'
import { withExamples, withJson } from './help.ts'
import { config } from './operator.ts'

export function addBackupCommands(program: Command): void {
  const backup = program.command('backup').description('copies of all telemetry and of the control plane')
  const load = () => import('../backup.ts')
  withExamples(
    withJson(backup.command('create'))
      .description('take a backup, beside a running service or without one, and wait until it is complete')
      .option('--keep-days <days>', 'days until the service removes it (default: LETHE_BACKUP_KEEP_DAYS)')
      .action(async (options) => (await load()).createBackup(await config(), options)),
    'lethe backup create --keep-days 7',
  )
  withExamples(
    withJson(backup.command('list'))
      .description('list backups, newest first')
      .action(async (options) => (await load()).listBackups(await config(), options)),
    'lethe backup list',
  )
  withExamples(
    withJson(backup.command('remove'))
      .description('remove a backup before it expires')
      .argument('<backup_id>')
      .option('--gone', 'nothing of it exists any more: it was deleted, or its disk is lost')
      .action(async (id, options) => (await load()).removeBackupById(await config(), id, options)),
    'lethe backup remove bak_01kampe0000000000000000000',
  )
  withExamples(
    withJson(backup.command('restore'))
      .description(
        'restore a backup into the data folder of a stopped service; it replaces the telemetry there',
      )
      .argument('<backup>', 'id, or folder')
      .option('--into <data_dir>', 'another data folder')
      .addOption(
        new Option('--control-plane <which>', 'the current one, or that of the backup')
          .choices(['keep', 'from-backup'])
          .default('keep'),
      )
      .option('--without-journal', 'accept that telemetry erased after the backup is readable again')
      .action(async (backupId, options) => (await load()).restore(process.env, backupId, options)),
    'lethe backup restore bak_01kampe0000000000000000000',
    'lethe backup restore /srv/backups/bak_01kampe0000000000000000000 --into /srv/lethe --control-plane from-backup',
  )
}
