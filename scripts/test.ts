// Runs tests with Node's own runner: `fast` for those that need no store, `control` for those that open a
// control plane (LETHE_TEST_CONTROL_PLANE names the database, see tests/control-planes.ts), otherwise all, or
// only the files that are named. Each test file has its own process, because the embedded engine allows one
// data folder per process.

import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const wanted = process.argv.slice(2)
/** These take minutes. They start first, so that the run does not wait for them alone at the end. */
const isLong = (file: string) => file.startsWith('tests/simulation/')
const found = globSync('{contract,console,server,tests,scripts,bench}/**/*.test.ts', { cwd: root }).sort()
const all = [...found.filter(isLong), ...found.filter((file) => !isLong(file))]
const isFast = (file: string) => !/\.db\.test\.ts$|^tests\/(?:scenario|simulation)\//.test(file)
const opensControl = (file: string) =>
  /\bopen(?:(?:Shared|Empty)?ControlPlane|Control|Stores)\(/.test(readFileSync(join(root, file), 'utf8'))
const kinds: Readonly<Record<string, (file: string) => boolean>> = { fast: isFast, control: opensControl }
const kind = kinds[wanted[0] ?? '']
const files = kind !== undefined ? all.filter(kind) : wanted.length > 0 ? wanted : all

/** All tests take ten minutes on two cores; a run that takes this long is stuck. */
const wholeRunMs = 40 * 60_000

const { error, status } = spawnSync(
  process.execPath,
  [
    '--disable-warning=ExperimentalWarning',
    '--test',
    '--test-concurrency=2',
    '--test-reporter=spec',
    ...files,
  ],
  { cwd: root, stdio: 'inherit', timeout: wholeRunMs },
)
if (error !== undefined) process.stderr.write(`The tests were ended: ${error.message}\n`)
process.exit(status ?? 1)
