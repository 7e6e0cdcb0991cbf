// The tree of all commands. It loads only definitions, so that help, completion and `--version` are fast; a
// command imports its code when it runs.

import { Command } from 'commander'
import { version } from '../core/process/version.ts'
import { addClientCommands } from './client/commands.ts'
import { addBackupCommands } from './commands/backup.ts'
import { addDetectCommand } from './commands/detect.ts'
import { addCertificateCommands, addChainCommands } from './commands/evidence.ts'
import { withExamples } from './commands/help.ts'
import { addMigrateCommand } from './commands/migrate.ts'
import {
  addClockCommands,
  addHoldCommands,
  addKeyCommands,
  addOrganisationCommands,
  addQuotaCommands,
  addTokenCommands,
} from './commands/operator.ts'
import { addServiceCommands } from './commands/service.ts'

/** In the order of the help. */
const groups: readonly (readonly [title: string, ...adds: readonly ((program: Command) => void)[]])[] = [
  ['The service:', addServiceCommands],
  ['Clients of a service, over HTTP with an access token:', addClientCommands],
  [
    'The operator, on the machine of the service:',
    addOrganisationCommands,
    addTokenCommands,
    addQuotaCommands,
    addHoldCommands,
    addClockCommands,
    addKeyCommands,
    addBackupCommands,
    addMigrateCommand,
    addChainCommands,
  ],
  ['On any machine, without a service:', addDetectCommand, addCertificateCommands],
]

const footer = `
Clients read LETHE_URL and LETHE_TOKEN, or {"url": ..., "token": ...} from ~/.config/lethe/config.json.

Exit codes: 0 done; 1 wrong option, refusal or failure, or evidence that is broken; 2 evidence that no trusted key was
given for; 3 the service can't be reached; 4 a deletion that was waited for was not completed; 141 the reader closed the
output.`

export function buildProgram(): Command {
  const program = new Command('lethe')
    .description(
      'Stores telemetry per organisation, watches it for anomalies, and lets an organisation erase its own.',
    )
    .version(version)
    .exitOverride()
  for (const [title, ...adds] of groups) {
    program.commandsGroup(title)
    for (const add of adds) add(program)
  }
  program.commandsGroup('The command line:')
  return withExamples(
    program,
    'lethe serve',
    'lethe erase range --until 2026-11-01T00:00:00Z',
    'lethe help erase',
  ).addHelpText('after', footer)
}
