// Parts of the help of commands: examples that can be pasted, and options that several commands share.

import { type Command, Option } from 'commander'

/** Each example is one command line as a person would type it. */
export function withExamples(command: Command, ...examples: readonly string[]): Command {
  const title = examples.length === 1 ? 'Example' : 'Examples'
  return command.addHelpText('after', `\n${title}:\n${examples.map((line) => `  ${line}`).join('\n')}`)
}

/** Adds `--json`: JSON instead of lines for people. */
export function withJson(command: Command): Command {
  return command.option('--json', 'print JSON')
}

/** The organisation of an operator command; clients act for the one of their token. */
export function ofOrg(): Option {
  return new Option('--org <tenant_id>', 'the organisation').makeOptionMandatory()
}
