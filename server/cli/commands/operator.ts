// Commands of the operator on the machine of the service: organisations, access tokens, quotas, legal holds,
// the clock, signing keys. They open the control plane directly and work beside a running service.
// Definitions only; a command loads its code when it runs.

import { type Command, Option } from 'commander'
import type { Config } from '../../config.ts'
import { roleChoices } from './choices.ts'
import { ofOrg, withExamples, withJson } from './help.ts'

/** Reads the settings of the service from the environment. */
export async function config(): Promise<Config> {
  return (await import('../../config.ts')).readConfig(process.env)
}

export function addOrganisationCommands(program: Command): void {
  const org = program.command('org').description('organisations')
  const load = () => import('../administer.ts')
  withExamples(
    withJson(org.command('create'))
      .description('create an organisation and print its owner token')
      .argument('<tenant_id>', 'never changes; 3 to 40 of a-z, 0-9, hyphen')
      .option('--name <name>', 'a name for people (default: the tenant_id)')
      .action(async (id, options) => (await load()).createOrganisation(await config(), id, options)),
    "lethe org create acme --name 'Acme Ltd'",
  )
  withExamples(
    withJson(org.command('list'))
      .description('list organisations, by tenant_id')
      .action(async (options) => (await load()).listOrganisations(await config(), options)),
    'lethe org list',
    'lethe org list --json',
  )
}

export function addTokenCommands(program: Command): void {
  const token = program.command('token').description('access tokens')
  const load = () => import('../administer.ts')
  withExamples(
    withJson(token.command('create'))
      .description(
        'create an access token and print its secret, only this time. Where a deletion needs two people, tokens that the operator created count as different people: give each token to one person only, and no person two tokens',
      )
      .addOption(ofOrg())
      .addOption(
        new Option('--role <role>', 'role of the token').choices([...roleChoices]).makeOptionMandatory(),
      )
      .option('--name <name>', 'a name to identify it', 'command line')
      .option('--days <days>', 'days until it expires; never where absent')
      .action(async (options) => (await load()).createToken(await config(), options)),
    'lethe token create --org acme --role ingest --name collector',
    'lethe token create --org acme --role viewer --days 30',
  )
  withExamples(
    withJson(token.command('list'))
      .description('list access tokens, newest first')
      .addOption(ofOrg())
      .action(async (options) => (await load()).listTokens(await config(), options)),
    'lethe token list --org acme',
  )
  withExamples(
    withJson(token.command('revoke'))
      .description('revoke an access token; it stops working at once (sending, with PostgreSQL: within 2 s)')
      .argument('<token_id>')
      .addOption(ofOrg())
      .option('--with-descendants', 'also all its descendants')
      .action(async (id, options) => (await load()).revokeToken(await config(), id, options)),
    'lethe token revoke tok_01kampe0000000000000000000 --org acme',
    'lethe token revoke tok_01kampe0000000000000000000 --org acme --with-descendants',
  )
}

export function addHoldCommands(program: Command): void {
  const hold = program.command('hold').description('legal holds that only the operator can release')
  const load = () => import('../hold.ts')
  withExamples(
    withJson(hold.command('place'))
      .description('prevent the erasure of telemetry until the hold is released')
      .addOption(ofOrg())
      .addOption(new Option('--case <reference>', 'what it is for').makeOptionMandatory())
      .option('--from <instant>', 'inclusive, with an offset; from the beginning where absent')
      .option('--until <instant>', 'exclusive; to the end where absent')
      .option('--signals <list>', 'such as logs,traces; all where absent')
      .option('--review <instant>', 'when to check whether it is still needed')
      .action(async (options) => (await load()).placeHold(await config(), options)),
    'lethe hold place --org acme --case 2026-117 --from 2026-03-01T00:00:00Z --signals logs,traces',
  )
  withExamples(
    withJson(hold.command('list'))
      .description('list legal holds, newest first')
      .addOption(ofOrg())
      .action(async (options) => (await load()).listHolds(await config(), options)),
    'lethe hold list --org acme',
  )
  withExamples(
    withJson(hold.command('release'))
      .description('release a hold; the deletions that it deferred continue')
      .argument('<hold_id>')
      .addOption(ofOrg())
      .action(async (id, options) => (await load()).releaseHold(await config(), id, options)),
    'lethe hold release hld_01kampe0000000000000000000 --org acme',
  )
}

export function addClockCommands(program: Command): void {
  const clock = program.command('clock').description('whether the machine’s clock is correct')
  const load = () => import('../clock.ts')
  withExamples(
    withJson(clock.command('show'))
      .description('show whether the clock is in doubt, and what is paused')
      .action(async (options) => (await load()).showClock(await config(), options)),
    'lethe clock show',
  )
  withExamples(
    withJson(clock.command('confirm'))
      .description('confirm that the clock is correct now; erasing by date continues')
      .action(async (options) => (await load()).confirmClockNow(await config(), options)),
    'lethe clock confirm',
  )
}

export function addQuotaCommands(program: Command): void {
  const quota = program.command('quota').description('what an organisation may send')
  const load = () => import('../quota.ts')
  withExamples(
    withJson(quota.command('set'))
      .description('set limits; a running service applies them from its next request on')
      .addOption(ofOrg())
      .option('--rows-per-second <n>', 'a number, unlimited, or default (of the settings)')
      .option('--bytes-per-day <n>', 'of uncompressed requests in a UTC day: a number, unlimited, or default')
      .action(async (options) => (await load()).setQuota(await config(), options)),
    'lethe quota set --org acme --rows-per-second 50000 --bytes-per-day unlimited',
  )
  withExamples(
    withJson(quota.command('show'))
      .description('show limits, and what was sent per day')
      .addOption(ofOrg())
      .action(async (options) => (await load()).showQuota(await config(), options)),
    'lethe quota show --org acme',
  )
}

export function addKeyCommands(program: Command): void {
  const keys = program
    .command('keys')
    .description('the keys that certificates and checkpoints are signed with')
  const load = () => import('../keys.ts')
  withExamples(
    withJson(keys.command('list'))
      .description('list them, oldest first')
      .action(async (options) => (await load()).listKeys(await config(), options)),
    'lethe keys list',
  )
  withExamples(
    withJson(keys.command('rotate'))
      .description('sign with a new key from now on; old signatures stay valid')
      .option('--lost-key', 'also if the key that seals the old one is lost')
      .action(async (options) => (await load()).rotateKeys(await config(), options)),
    'lethe keys rotate',
  )
  withExamples(
    withJson(keys.command('reseal'))
      .description('seal (encrypt) them with the key that LETHE_KEY_FILE or LETHE_KEY_SECRET now names')
      .option(
        '--old-key-file <FILE>',
        'file of the old sealing key, unless LETHE_OLD_KEY_SECRET has its secret',
      )
      .action(async (options) => (await load()).resealKeys(await config(), options)),
    'LETHE_KEY_FILE=/etc/lethe/new.key lethe keys reseal --old-key-file data/signing.key',
  )
}
