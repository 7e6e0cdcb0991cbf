// `lethe completion SHELL`: prints a script with which a shell completes commands, options and their values.
// The script runs `lethe complete`, so its offers are always those of this version.

import tab from '@bomb.sh/tab/commander'
import type { Command } from 'commander'
import { withExamples } from './commands/help.ts'

/** Call it when the tree is complete: commands that are added later are not offered. */
export function addCompletion(program: Command): void {
  tab(program, { completionCommandName: 'completion' })
  const command = program.commands.find((one) => one.name() === 'completion')
  if (command === undefined) return
  withExamples(
    command.description('print a script with which the shell completes commands and options'),
    'source <(lethe completion bash)',
    'lethe completion zsh > ~/.zfunc/_lethe',
    'lethe completion fish > ~/.config/fish/completions/lethe.fish',
  )
}
