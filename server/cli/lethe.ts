// The `lethe` command: serve, demo, and what an operator does on the machine itself without a running service:
// organisations, access tokens, signing keys and evidence. An error is one sentence on standard error and a non-zero exit.

import { Command, CommanderError, Option } from 'commander'
import { methodKeys } from '../../contract/detection-methods.ts'
import { roles } from '../../contract/tenancy.ts'
import { version } from '../app.ts'
import { readConfig } from '../config.ts'
import { createOrganisation, createToken, listTokens, revokeToken } from './administer.ts'
import { createBackup, listBackups, type RestoreCommand, removeBackupById, restore } from './backup.ts'
import { verifyCertificate } from './certificate.ts'
import { confirmClockNow, showClock } from './clock.ts'
import { demo } from './demo.ts'
import { type DetectOptions, detect } from './detect.ts'
import { exportEvidence, type VerifyOptions, verifyEvidence } from './evidence.ts'
import { type HoldOptions, listHolds, placeHold, releaseHold } from './hold.ts'
import { listKeys, rotateKeys } from './keys.ts'
import { type QuotaOptions, setQuota, showQuota } from './quota.ts'
import { serve } from './serve.ts'

// Everything the service writes is for its own user only, also in a folder that was there before.
process.umask(0o077)

const program = new Command('lethe')
  .description('Holds telemetry per organisation, watches it, and lets an organisation erase its own.')
  .version(version)

program
  .command('serve')
  .description('run the service (settings: LETHE_* environment variables)')
  .action(() => serve(readConfig(process.env)))

program
  .command('demo')
  .description('run the service with a small shop’s telemetry of two weeks, and keep it alive')
  .action(() => demo(process.env))

const org = program.command('org').description('organisations')
org
  .command('create')
  .description('create an organisation and print its owner token')
  .argument('<tenant_id>', 'immutable: 3 to 40 of a-z, 0-9, hyphen')
  .option('--name <name>', 'a name for people; the tenant_id where absent')
  .action((tenantId: string, options: { name?: string }) =>
    createOrganisation(readConfig(process.env), tenantId, options),
  )

const token = program.command('token').description('access tokens')
const ofOrg = () => new Option('--org <tenant_id>', 'the organisation').makeOptionMandatory()
token
  .command('create')
  .description('create an access token and print its secret, this once')
  .addOption(ofOrg())
  .addOption(new Option('--role <role>', 'what it may do').choices([...roles]).makeOptionMandatory())
  .option('--name <name>', 'to recognise it by', 'command line')
  .option('--days <days>', 'days until it expires; never where absent')
  .action((options) => createToken(readConfig(process.env), options))
token
  .command('list')
  .description('list access tokens, newest first')
  .addOption(ofOrg())
  .action((options) => listTokens(readConfig(process.env), options))
token
  .command('revoke')
  .description('revoke an access token; it stops working with the next request')
  .argument('<token_id>')
  .addOption(ofOrg())
  .action((id: string, options) => revokeToken(readConfig(process.env), id, options))

const hold = program.command('hold').description('legal holds that only the operator can release')
hold
  .command('place')
  .description('keep telemetry from being erased until the hold is released')
  .addOption(ofOrg())
  .addOption(new Option('--case <reference>', 'what it is for').makeOptionMandatory())
  .option('--from <instant>', 'inclusive, with an offset; from the beginning where absent')
  .option('--until <instant>', 'exclusive; to the end where absent')
  .option('--signals <list>', 'such as logs,traces; all where absent')
  .option('--review <instant>', 'when to look whether it is still needed')
  .action((options: HoldOptions) => placeHold(readConfig(process.env), options))
hold
  .command('list')
  .description('list legal holds, newest first')
  .addOption(ofOrg())
  .action((options) => listHolds(readConfig(process.env), options))
hold
  .command('release')
  .description('release a hold; deletions it deferred go on by themselves')
  .argument('<hold_id>')
  .addOption(ofOrg())
  .action((id: string, options) => releaseHold(readConfig(process.env), id, options))

const clock = program.command('clock').description('whether the machine’s clock can be believed')
clock
  .command('show')
  .description('say whether the clock is in doubt, and what is paused by it')
  .action(() => showClock(readConfig(process.env)))
clock
  .command('confirm')
  .description('say that the clock is right now; what erases by date goes on')
  .action(() => confirmClockNow(readConfig(process.env)))

const quota = program.command('quota').description('what an organisation may send')
quota
  .command('set')
  .description('set limits; a running service keeps to them from its next request on')
  .addOption(ofOrg())
  .option('--rows-per-second <n>', 'a number, unlimited, or default (of the settings)')
  .option('--bytes-per-day <n>', 'of uncompressed requests in a UTC day: a number, unlimited, or default')
  .action((options: QuotaOptions) => setQuota(readConfig(process.env), options))
quota
  .command('show')
  .description('show limits, and what was sent by day')
  .addOption(ofOrg())
  .action((options: { org: string }) => showQuota(readConfig(process.env), options))

for (const [chain, what] of [
  ['ledger', 'the life of every deletion request'],
  ['audit', 'who did what'],
] as const) {
  const command = program.command(chain).description(`the ${chain} of an organisation: ${what}`)
  command
    .command('export')
    .description('write it to standard output as NDJSON that ends with a signed checkpoint')
    .addOption(ofOrg())
    .action((options) => exportEvidence(readConfig(process.env), chain, options))
  command
    .command('verify')
    .description('check an exported FILE, or every chain of this data folder; exits 1 where it is broken')
    .argument('[FILE]', 'an export')
    .option('--org <tenant_id>', 'only this organisation')
    .option(
      '--jwks <KEYS>',
      'trust these keys (a saved /.well-known/jwks.json) instead of this data folder’s',
    )
    .option('--live', 'also check that the chain of this data folder continues the FILE')
    .action(async (file: string | undefined, options: VerifyOptions) => {
      process.exitCode = await verifyEvidence(readConfig(process.env), chain, file, options)
    })
}

program
  .command('certificate')
  .description('certificates of deletions')
  .command('verify')
  .description(
    'check a certificate without the service; exits 1 where it does not hold, 2 without a trusted key',
  )
  .argument('<FILE>', 'the JSON form, or the text of its signature')
  .option('--jwks <KEYS>', 'trust these keys (a saved /.well-known/jwks.json) instead of this data folder’s')
  .action(async (file: string, options: { jwks?: string }) => {
    process.exitCode = await verifyCertificate(readConfig(process.env), file, options)
  })

program
  .command('detect')
  .description('look for anomalies in a file, by the code that detectors run, without a service')
  .requiredOption('--csv <FILE>', 'lines of timestamp,value')
  .addOption(
    new Option('--method <key>', 'the detection method').choices([...methodKeys]).default('robust_band'),
  )
  .option('--params <JSON>', 'its params, as a detector takes them', '{}')
  .option('--grouped', 'lines are timestamp,group,value: a series for each group')
  .option('--step <minutes>', 'width of a bucket; the usual distance of two points where absent')
  .option('--scores', 'also print every bucket with its score and band, as CSV')
  .option('--json', 'print anomalies as JSON')
  .action((options: DetectOptions) => detect(options))

const keys = program.command('keys').description('the keys that certificates and checkpoints are signed with')
keys
  .command('list')
  .description('list them, oldest first')
  .action(() => listKeys(readConfig(process.env)))
keys
  .command('rotate')
  .description('sign with a new key from now on; what the old one signed stays valid')
  .action(() => rotateKeys(readConfig(process.env)))

const backup = program.command('backup').description('copies of all telemetry and of the control plane')
backup
  .command('create')
  .description('take a backup, beside a running service or without one, and wait until it is whole')
  .option('--keep-days <days>', 'days until the service removes it; LETHE_BACKUP_KEEP_DAYS where absent')
  .action((options: { keepDays?: string }) => createBackup(readConfig(process.env), options))
backup
  .command('list')
  .description('list backups, newest first')
  .action(() => listBackups(readConfig(process.env)))
backup
  .command('remove')
  .description('remove a backup before its time is over')
  .argument('<backup_id>')
  .action((id: string) => removeBackupById(readConfig(process.env), id))
backup
  .command('restore')
  .description('put a backup into the data folder of a stopped service, in place of the telemetry there')
  .argument('<backup>', 'id, or folder')
  .option('--into <data_dir>', 'another data folder')
  .addOption(
    new Option('--control-plane <which>', 'the one that is there, or the backup’s')
      .choices(['keep', 'from-backup'])
      .default('keep'),
  )
  .option('--without-journal', 'accept that what was erased since the backup is readable again')
  .action((id: string, options: RestoreCommand) => restore(process.env, id, options))

try {
  await program.exitOverride().parseAsync()
} catch (error) {
  // Commander has already printed what it throws, also for --help and --version.
  if (!(error instanceof CommanderError)) process.stderr.write(`lethe: ${sentenceOf(error)}\n`)
  process.exitCode = error instanceof CommanderError ? error.exitCode : 1
}

function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if ('code' in error && error.code === 'EADDRINUSE') {
    return `${error.message}. Something else listens there; choose another with LETHE_PORT.`
  }
  return error.message
}
