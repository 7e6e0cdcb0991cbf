// Runs one command line in this process. An error is one sentence on standard error and a non-zero exit code.

import { CommanderError } from 'commander'
import { CommandFailure, exitCodes, fileSentence } from './failure.ts'
import { say } from './print.ts'
import { buildProgram } from './program.ts'

/** Resolves when the command has ended; its exit code is that of the process. */
export async function runCommandLine(words: readonly string[]): Promise<void> {
  try {
    const program = buildProgram()
    // The library of completions is as large as the rest of the command line, and few calls need it.
    const { addCompletion } = await import('./completion.ts')
    addCompletion(program)
    await program.parseAsync(words, { from: 'user' })
  } catch (error) {
    // Commander has already printed its own errors, also for --help and --version.
    if (!(error instanceof CommanderError)) say(`lethe: ${sentenceOf(error)}`)
    if (error instanceof CommandFailure) for (const line of error.details) say(line)
    process.exitCode = exitCodeOf(error)
  }
}

function exitCodeOf(error: unknown): number {
  if (error instanceof CommandFailure || error instanceof CommanderError) return error.exitCode
  return exitCodes.failed
}

function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if ('code' in error && error.code === 'EADDRINUSE') {
    return `${error.message}. Another process listens there; choose another port with LETHE_PORT.`
  }
  return fileSentence(error) ?? error.message
}
