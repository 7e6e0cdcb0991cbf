// What every command's help has: examples that can be pasted, and the words that several commands share.

import { type Command, Option } from 'commander'

/** Each is one command line as a person would type it. */
export function withExamples(command: Command, ...examples: readonly string[]): Command {
  const title = examples.length === 1 ? 'Example' : 'Examples'
  return command.addHelpText('after', `\n${title}:\n${examples.map((line) => `  ${line}`).join('\n')}`)
}

/** `--json` in place of lines for a person. */
export function withJson(command: Command): Command {
  return command.option('--json', 'print JSON')
}

/** The organisation of an operator command; clients act for the one of their token. */
export function ofOrg(): Option {
  return new Option('--org <tenant_id>', 'the organisation').makeOptionMandatory()
}
