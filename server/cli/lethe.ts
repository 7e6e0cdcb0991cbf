// The `lethe` command: serve, demo, and what an operator does on the machine itself without a running service:
// organisations and access tokens. An error is one sentence on standard error and a non-zero exit.

import { Command, CommanderError, Option } from 'commander'
import { roles } from '../../contract/tenancy.ts'
import { version } from '../app.ts'
import { readConfig } from '../config.ts'
import { createOrganisation, createToken, listTokens, revokeToken } from './administer.ts'
import { demo } from './demo.ts'
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
