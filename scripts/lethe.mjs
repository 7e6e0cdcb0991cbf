#!/usr/bin/env node
// The `lethe` command: the command line of server/cli on the pinned Node. `--version` is printed here,
// without an installation and without starting a second Node.

import { readFileSync } from 'node:fs'
import process from 'node:process'

const words = process.argv.slice(2)
if (words.length === 1 && ['--version', '-V'].includes(words[0])) {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  process.stdout.write(`${version}\n`)
} else {
  const { run } = await import('./run.mjs')
  run('server/cli/lethe.ts', words)
}
