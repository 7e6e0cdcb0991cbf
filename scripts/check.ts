// The check: types, lint and format, then the fast tests, which include the house rules. CI runs all tests
// after it, so there it is called with `--untested` and leaves the fast ones out.

import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const bin = (name: string) => join(root, 'node_modules', '.bin', name)

const steps: readonly (readonly [string, string, readonly string[]])[] = [
  ['types', bin('tsc'), ['--noEmit']],
  ['types of the console', bin('tsc'), ['--noEmit', '-p', 'console']],
  ['lint and format', bin('biome'), ['check', '--error-on-warnings', '.']],
  ['fast tests', process.execPath, [join(root, 'scripts/test.ts'), 'fast']],
]

const isUntested = process.argv.includes('--untested')

for (const [name, command, args] of steps) {
  if (isUntested && name === 'fast tests') continue
  process.stdout.write(`\n# ${name}\n`)
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit' })
  if (status !== 0) {
    process.stderr.write(`\ncheck failed at: ${name}\n`)
    process.exit(status ?? 1)
  }
}
