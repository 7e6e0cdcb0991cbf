// Runs tests with Node's own runner: `fast` for those that need no store, `control` for those that open a
// control plane, otherwise all, or only the files that are named. Those that open a control plane run on
// SQLite and then again on PostgreSQL; LETHE_TEST_CONTROL_PLANE names one of them (tests/control-planes.ts).
// Each test file has its own process, because the embedded engine allows one data folder per process.

import { spawn } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { createTemplate } from '../tests/postgres-plane.ts'
import { folderVariable, startPostgres } from '../tests/postgres-server.ts'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const wanted = process.argv.slice(2)
const all = globSync('{contract,console,server,tests,scripts,bench}/**/*.test.ts', { cwd: root }).sort()
const isFast = (file: string) => !/\.db\.test\.ts$|^tests\/(?:scenario|simulation)\//.test(file)
const opensControl = (file: string) =>
  /\bopen(?:(?:Shared|Empty)?ControlPlane|Control|Stores)\(/.test(readFileSync(join(root, file), 'utf8'))
/**
 * Tests of one database do not depend on the one that was chosen for the others. Whole backups need nothing
 * of the database but a copy of the control plane, which is tested on both. Whole erasures run on SQLite
 * only, because on PostgreSQL each writes the derived tables anew; tests/scenario/canary-postgres.test.ts has
 * some there. The tests of the loop count who waits for their clock, so they need a database that answers
 * within a turn of the event loop.
 */
const isOfOne = (file: string) =>
  /^(?:server\/control\/(?:sqlite|postgres)|tests\/races)\/|^server\/(?:backup\/backups|worker\/periodic)\./.test(
    file,
  ) ||
  /^server\/deletion\/(?:[^/]+\.db|attempt\/.*|governance\/.*|preview\/.*|retention\/worker.*)\.test\.ts$/.test(
    file,
  )
const needsServer = (file: string) =>
  /\/(?:postgres-plane|race)\.ts'$/m.test(readFileSync(join(root, file), 'utf8'))
const kinds: Readonly<Record<string, (file: string) => boolean>> = { fast: isFast, control: opensControl }
const kind = kinds[wanted[0] ?? '']
const files = kind !== undefined ? all.filter(kind) : wanted.length > 0 ? wanted : all

/** A round takes about half an hour on two cores; one that takes this long is stuck. */
const wholeRunMs = 90 * 60_000

interface Round {
  readonly plane: string
  readonly files: readonly string[]
}

/** The fast tests open no server; which database they use does not matter to them. */
function planRounds(): Round[] {
  const chosen = process.env.LETHE_TEST_CONTROL_PLANE
  if (chosen !== undefined) return [{ plane: chosen, files }]
  const again = kind === isFast ? [] : files.filter((file) => opensControl(file) && !isOfOne(file))
  return [
    { plane: 'sqlite', files },
    { plane: 'postgres', files: again },
  ].filter((round) => round.files.length > 0)
}

function runRound({ plane, files: tests }: Round, environment: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      '--test',
      '--test-concurrency=2',
      '--test-reporter=spec',
      ...tests,
    ],
    {
      cwd: root,
      stdio: 'inherit',
      env: { ...process.env, ...environment, LETHE_TEST_CONTROL_PLANE: plane },
      timeout: wholeRunMs,
    },
  )
  const pass = (signal: NodeJS.Signals) => child.kill(signal)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, pass)
  return new Promise((resolve) => {
    child.once('error', (error) => {
      process.stderr.write(`The tests were ended: ${error.message}\n`)
      resolve(1)
    })
    child.once('exit', (code) => resolve(code ?? 1))
  })
}

async function runAll(): Promise<number> {
  const rounds = planRounds()
  const isServed = rounds.some(({ plane, files: tests }) => plane === 'postgres' || tests.some(needsServer))
  const server = isServed ? await startPostgres() : null
  try {
    if (server !== null) await createTemplate(server.folder)
    let status = 0
    for (const round of rounds) {
      if (rounds.length > 1) process.stdout.write(`\n# control plane: ${round.plane}\n`)
      status ||= await runRound(round, server === null ? {} : { [folderVariable]: server.folder })
    }
    return status
  } finally {
    await server?.stop()
  }
}

process.exitCode = await runAll().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  return 1
})
