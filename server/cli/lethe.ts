// The `lethe` command: runs one command line. An error is one sentence on standard error and a non-zero exit
// code. If the reader closes the output, the command ends without a message.

import { CommanderError } from 'commander'
import { serviceCommands } from './commands/service.ts'
import { CommandFailure, exitCodes, fileSentence } from './failure.ts'
import { say } from './print.ts'
import { buildProgram } from './program.ts'

// Files that the service writes are for its own user only, also in a folder that existed before.
process.umask(0o077)

const [named = ''] = process.argv.slice(2)
// A service continues after its reader has closed the output; any other command ends.
const continuesWithoutReader = serviceCommands.includes(named)
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (continuesWithoutReader) return
    if (error.code === 'EPIPE') process.exit(exitCodes.closedPipe)
    if (stream === process.stdout) say(`lethe: the output can't be written: ${error.message}`)
    process.exit(exitCodes.failed)
  })
}

try {
  const program = buildProgram()
  // The library of completions is as large as the rest of the command line, and few calls need it.
  const { addCompletion } = await import('./completion.ts')
  addCompletion(program)
  await program.parseAsync()
} catch (error) {
  // Commander has already printed its own errors, also for --help and --version.
  if (!(error instanceof CommanderError)) say(`lethe: ${sentenceOf(error)}`)
  if (error instanceof CommandFailure) for (const line of error.details) say(line)
  process.exitCode = exitCodeOf(error)
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
