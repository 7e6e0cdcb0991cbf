// The `lethe` command: runs one command line. If the reader closes the output, the command ends without a
// message.

import { serviceCommands } from './commands/service.ts'
import { exitCodes } from './failure.ts'
import { say } from './print.ts'
import { runCommandLine } from './run.ts'

// Files that the service writes are for its own user only, also in a folder that existed before.
process.umask(0o077)

const words = process.argv.slice(2)
const [named = ''] = words
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

await runCommandLine(words)
