// Commands that are clients of a service: over HTTP, with an access token, for the token's own organisation.
// This room depends on the contract and not on the service. Definitions only; a command loads its code when
// it runs.

import { type Command, Option } from 'commander'
import { reasonChoices, statusChoices } from '../commands/choices.ts'
import { withExamples, withJson } from '../commands/help.ts'
import { say } from '../print.ts'
import type { Connection } from './settings.ts'

/** Reads the connection from the environment or from the user's file. */
async function connection(): Promise<Connection> {
  const { isUnencrypted, readConnection } = await import('./settings.ts')
  const found = readConnection(process.env)
  if (isUnencrypted(found)) {
    say(`lethe: warning: ${found.url} has no TLS, so the access token is sent without encryption.`)
  }
  return found
}

const systemClock = async () => (await import('../../core/clock.ts')).systemClock

export function addClientCommands(program: Command): void {
  addEraseCommands(program)
  addDeletionCommands(program)
  addUsageCommand(program)
  addAnomalyCommands(program)
  addIncidentCommands(program)
}

function addEraseCommands(program: Command): void {
  const erase = program.command('erase').description('erase telemetry of your organisation')
  const define = (scope: 'range' | 'all') =>
    withJson(erase.command(scope))
      .option('--signals <list>', 'such as logs,traces; all where absent')
      .addOption(new Option('--reason <reason>', 'for the records').choices([...reasonChoices]))
      .option('--note <text>', 'for the records, which outlive the telemetry: no personal data')
      .option(
        '--delay <duration>',
        'hidden now, removed after this delay, such as 24h; can be cancelled until then',
      )
      .option('--refuse-late', 'also refuse telemetry for the erased time after the erasure')
      .option('--confirm <tenant_id>', 'confirm without a question; where absent, the terminal asks')
      .option(
        '--preview <id>',
        'with --confirm: the id from an earlier --dry-run; erases only if that is still correct',
      )
      .option('--dry-run', 'show what would be erased, and erase nothing')
      .option('--wait', 'follow it until it ends; exits 4 unless it is completed')
      .action(async (options) => {
        const client = await import('./erase.ts')
        await client.erase(await connection(), scope, options, await systemClock())
      })
  withExamples(
    define('range')
      .description('erase everything before a point in time, or between two')
      .option('--from <instant>', 'inclusive, with an offset; from the beginning where absent')
      .requiredOption('--until <instant>', 'exclusive, with an offset'),
    'lethe erase range --until 2026-11-01T00:00:00Z --dry-run',
    'lethe erase range --until 2026-11-01T00:00:00Z --wait',
    'lethe erase range --from 2026-11-20T09:00:00Z --until 2026-11-20T10:00:00Z --signals logs \\',
    '    --reason leaked_secret --refuse-late --confirm acme --wait',
  )
  withExamples(
    define('all').description('erase all telemetry of your organisation'),
    'lethe erase all --delay 24h',
    'lethe erase all --reason offboarding --confirm acme --wait',
  )
}

function addDeletionCommands(program: Command): void {
  const deletions = program.command('deletions').description('deletion requests of your organisation')
  const load = () => import('./deletions.ts')
  const id = 'del_01kampe0000000000000000000'
  withExamples(
    withJson(deletions.command('list'))
      .description('list them, newest first')
      .addOption(new Option('--status <status>', 'only these').choices([...statusChoices]))
      .option('--limit <n>', 'at most this many', '50')
      .action(async (options) => (await load()).listDeletions(await connection(), options)),
    'lethe deletions list --status held',
  )
  withExamples(
    withJson(deletions.command('get'))
      .description('one of them: its times, its progress and what it waits for')
      .argument('<request_id>')
      .action(async (given, options) => (await load()).getDeletion(await connection(), given, options)),
    `lethe deletions get ${id}`,
  )
  withExamples(
    withJson(deletions.command('watch'))
      .description('follow one until it ends; exits 4 unless it is completed')
      .argument('<request_id>')
      .action(async (given, options) => {
        await (await load()).watchDeletion(await connection(), given, options, await systemClock())
      }),
    `lethe deletions watch ${id}`,
    `lethe deletions watch ${id} --json`,
  )
  withExamples(
    deletions
      .command('certificate')
      .description('write the signed certificate of a completed one')
      .argument('<request_id>')
      .option('--html', 'the page to print, in place of JSON')
      .option('-o, --output <FILE>', 'standard output where absent')
      .action(async (given, options) => (await load()).saveCertificate(await connection(), given, options)),
    `lethe deletions certificate ${id} -o certificate.json`,
    `lethe deletions certificate ${id} --html -o certificate.html`,
  )
  withExamples(
    withJson(deletions.command('verify'))
      .description('count again what it selects; exits 1 if something is left')
      .argument('<request_id>')
      .action(async (given, options) => (await load()).verifyDeletion(await connection(), given, options)),
    `lethe deletions verify ${id}`,
  )
  addDecisionCommands(deletions, id)
}

function addDecisionCommands(deletions: Command, id: string): void {
  for (const [decision, what] of [
    ['cancel', 'cancel one that has not begun'],
    ['approve', 'approve one that another person requested'],
    ['retry', 'retry a failed or incomplete one now'],
  ] as const) {
    withExamples(
      withJson(deletions.command(decision))
        .description(what)
        .argument('<request_id>')
        .action(async (given, options) => {
          const { decideDeletion } = await import('./deletions.ts')
          await decideDeletion(await connection(), decision, given, options)
        }),
      `lethe deletions ${decision} ${id}`,
    )
  }
  withExamples(
    withJson(deletions.command('reject'))
      .description('reject one that waits for approval')
      .argument('<request_id>')
      .requiredOption('--reason <text>', 'why; recorded, so no personal data')
      .action(async (given, options) => {
        const { decideDeletion } = await import('./deletions.ts')
        await decideDeletion(await connection(), 'reject', given, options)
      }),
    `lethe deletions reject ${id} --reason 'the case is still open'`,
  )
}

function addUsageCommand(program: Command): void {
  withExamples(
    withJson(program.command('usage'))
      .description('what your organisation stores, and what it has sent')
      .option('--by-service', 'what each service stores, most bytes first')
      .action(async (options) => (await import('./usage.ts')).showUsage(await connection(), options)),
    'lethe usage',
    'lethe usage --by-service',
    'lethe usage --json',
  )
}

function addAnomalyCommands(program: Command): void {
  const anomalies = program.command('anomalies').description('anomalies of your organisation')
  const load = () => import('./anomalies.ts')
  withExamples(
    withJson(anomalies.command('list', { isDefault: true }))
      .description('list anomalies, newest first; the default')
      .option('--open', 'only those that have not ended')
      .option('--no-muted', 'only those that alarmed')
      .option('--detector <detector_id>', 'only of this detector')
      .option('--from <instant>', 'only those seen at or after this, such as -24h or 2026-11-20T09:00:00Z')
      .option('--until <instant>', 'only those that started before this')
      .option('--limit <n>', 'at most this many', '50')
      .action(async (options) => (await load()).listAnomalies(await connection(), options)),
    'lethe anomalies --open',
    'lethe anomalies list --from -24h --no-muted --json',
  )
  withExamples(
    withJson(anomalies.command('get'))
      .description('one of them, with its band and its reason')
      .argument('<anomaly_id>')
      .action(async (given, options) => (await load()).getAnomaly(await connection(), given, options)),
    'lethe anomalies get ano_01kampe0000000000000000000',
  )
}

function addIncidentCommands(program: Command): void {
  const incidents = program.command('incidents').description('anomalies that belong together')
  const load = () => import('./incidents.ts')
  withExamples(
    withJson(incidents.command('list', { isDefault: true }))
      .description('list incidents, newest first; the default')
      .addOption(new Option('--state <state>', 'only these').choices(['open', 'closed']))
      .option('--service <name>', 'only those with an anomaly of this service')
      .option('--from <instant>', 'only those seen at or after this, such as -24h or 2026-11-20T09:00:00Z')
      .option('--until <instant>', 'only those that started before this')
      .option('--limit <n>', 'at most so many', '50')
      .action(async (options) => (await load()).listIncidents(await connection(), options)),
    'lethe incidents --state open',
    'lethe incidents list --from -7d --json',
  )
  withExamples(
    withJson(incidents.command('show'))
      .description('one of them: where it likely began and why, and what happened when')
      .argument('<incident_id>')
      .action(async (given, options) => (await load()).showIncident(await connection(), given, options)),
    'lethe incidents show inc_01kampe0000000000000000000',
  )
}
