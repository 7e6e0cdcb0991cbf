// `lethe backup`: taking, listing, removing and restoring backups. Definitions only; what they do is
// loaded when one is called.

import { type Command, Option } from 'commander'
import { withExamples, withJson } from './help.ts'
import { config } from './operator.ts'

export function addBackupCommands(program: Command): void {
  const backup = program.command('backup').description('copies of all telemetry and of the control plane')
  const load = () => import('../backup.ts')
  withExamples(
    withJson(backup.command('create'))
      .description('take a backup, beside a running service or without one, and wait until it is whole')
      .option('--keep-days <days>', 'days until the service removes it; LETHE_BACKUP_KEEP_DAYS where absent')
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
      .description('remove a backup before its time is over')
      .argument('<backup_id>')
      .action(async (id, options) => (await load()).removeBackupById(await config(), id, options)),
    'lethe backup remove bak_01kampe0000000000000000000',
  )
  withExamples(
    withJson(backup.command('restore'))
      .description('put a backup into the data folder of a stopped service, in place of the telemetry there')
      .argument('<backup>', 'id, or folder')
      .option('--into <data_dir>', 'another data folder')
      .addOption(
        new Option('--control-plane <which>', 'the one that is there, or the backup’s')
          .choices(['keep', 'from-backup'])
          .default('keep'),
      )
      .option('--without-journal', 'accept that what was erased since the backup is readable again')
      .action(async (backupId, options) => (await load()).restore(process.env, backupId, options)),
    'lethe backup restore bak_01kampe0000000000000000000',
    'lethe backup restore /srv/backups/bak_01kampe0000000000000000000 --into /srv/lethe --control-plane from-backup',
  )
}
