// Runs tests with Node's own runner: `fast` for those that need no store, `control` for those that open a
// control plane, otherwise all, or only the files that are named. Those that open a control plane run on
// SQLite and then again on PostgreSQL; LETHE_TEST_CONTROL_PLANE names one of them (tests/control-planes.ts).
// Test files share processes, because the start of a process costs more than most of them. They run one after
// the other there, each with its own hooks (tests/together.ts), because the embedded engine allows one data
// folder at a time per process.

import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import process from 'node:process'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { createTemplate } from '../tests/postgres-plane.ts'
import { folderVariable, startPostgres } from '../tests/postgres-server.ts'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const wanted = process.argv.slice(2)
const all = globSync('{contract,console,server,tests,scripts,bench}/**/*.test.ts', { cwd: root }).sort()
const isFast = (file: string) => !/\.db\.test\.ts$|^tests\/(?:scenario|simulation)\//.test(file)
const sourceOf = (file: string) => readFileSync(join(root, file), 'utf8')
const opensControl = (file: string) =>
  /\bopen(?:(?:Shared|Empty)?ControlPlane|Control|Stores)\(/.test(sourceOf(file))
/**
 * Signals, memory and threads belong to the process. An engine that a file opens while it is loaded would be
 * open beside those of the files before it. Browsers, simulations and whole backups take so long that they
 * run beside others instead.
 */
const isAlone = (file: string) =>
  /^tests\/(?:console|fuzz|jepsen|simulation|scenario\/(?:backup|cli|crash))\b/.test(file) ||
  /^server\/deletion\/attempt\/worker\./.test(file) ||
  /\b(?:process\.(?:on|once|emit|exit|kill|memoryUsage|resourceUsage)|supervise)\(|\/proc\/self\/task/.test(
    sourceOf(file),
  ) ||
  /^const .*\bawait (?:openStores|openChdb|createApp)\(/m.test(sourceOf(file))
/** These take a minute or more. They begin first, so that none of them runs alone at the end. */
const isLong = (file: string) =>
  /^tests\/(?:console|scenario|simulation)\/|^server\/deletion\/attempt\/worker\./.test(file)
/**
 * Tests of one database do not depend on the one that was chosen for the others, and no control plane on
 * PostgreSQL has had the schemas before the migrations that are tested by themselves. Whole backups need
 * nothing of the database but a copy of the control plane, which is tested on both. The steps of an erasure
 * and the faults of its engine (attempt, bad-input) store the same few columns whatever they do, and so do
 * the rarer cases of a restore; on PostgreSQL they run where LETHE_TEST_CONTROL_PLANE says so,
 * tests/scenario/canary-postgres.test.ts has whole erasures there, and what requests, holds and restores
 * store of them is tested on both. The tests of the loop count who waits for their clock, so they need a
 * database that answers within a turn of the event loop. Tests of telemetry need a control plane only for
 * their organisations.
 */
const isOfOne = (file: string) =>
  /^(?:server\/control\/(?:sqlite|postgres)|tests\/races)\//.test(file) ||
  /^server\/control\/(?:actors|order|two-persons)-migration\./.test(file) ||
  /^server\/deletion\/(?:bad-input|attempt\/(?:worker|verifier|removed-parts|restore-guard-limits|survivor-copy))\./.test(
    file,
  ) ||
  /^server\/(?:backup\/backups|worker\/periodic)\./.test(file) ||
  /^(?:console|server\/(?:telemetry|query|detection\/incidents|ingest\/(?:rows\/writer|hostile)[^/]*))\b/.test(
    file,
  )
const needsServer = (file: string) => /\/(?:postgres-plane|race)\.ts'$/m.test(sourceOf(file))
const kinds: Readonly<Record<string, (file: string) => boolean>> = { fast: isFast, control: opensControl }
const kind = kinds[wanted[0] ?? '']
const files = kind !== undefined ? all.filter(kind) : wanted.length > 0 ? wanted : all

/** A round takes about half an hour on two cores; one that takes this long is stuck. */
const wholeRunMs = 90 * 60_000

/** One more than there are cores, because tests often wait for a service that starts or a disk that syncs. */
const processesAtOnce = availableParallelism() + 1

/** With more, a process could take the rest of the run alone. */
const filesPerProcessMax = 6

const longestShown = 15

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

/**
 * These hold transactions for seconds, or need a server on which nobody does: a snapshot is as old as the
 * oldest transaction of any database of the server. So they run one after the other.
 */
const holdsTransactions = (file: string) => file.startsWith('server/control/postgres/')

/** What the processes of a round run, in the order in which they begin. */
function planProcesses(tests: readonly string[]): (readonly string[])[] {
  const ownProcess = tests.filter(isAlone)
  const inTurns = tests.filter((file) => !isAlone(file) && !isFast(file) && holdsTransactions(file))
  const shared = tests.filter((file) => !ownProcess.includes(file) && !inTurns.includes(file))
  const perProcess = Math.ceil(shared.filter((file) => !isFast(file)).length / (processesAtOnce * 4))
  const inChunks = (files: readonly string[]) => chunksOf(files, Math.min(perProcess, filesPerProcessMax))
  const alone = ownProcess.map((file) => [file])
  const fast = shared.filter(isFast)
  return [
    ...[fast, inTurns].filter((files) => files.length > 0),
    ...alone.filter(([file = '']) => isLong(file)),
    ...inChunks(shared.filter((file) => !isFast(file) && isLong(file))),
    ...alone.filter(([file = '']) => !isLong(file)),
    ...inChunks(shared.filter((file) => !isFast(file) && !isLong(file))),
  ]
}

function chunksOf(files: readonly string[], size: number): string[][] {
  return Array.from({ length: Math.ceil(files.length / size) }, (_, at) =>
    files.slice(at * size, (at + 1) * size),
  )
}

/** Returns the program that runs the files in one process. The first of them is in its name. */
function programOf(files: readonly string[], folder: string): string {
  const [first = ''] = files
  if (files.length === 1) return join(root, first)
  const program = join(folder, `${first.replaceAll('/', '-')}-and-${files.length - 1}-more.mjs`)
  const together = pathToFileURL(join(root, 'tests/together.ts'))
  for (const file of files) together.searchParams.append('file', file)
  writeFileSync(program, `import ${JSON.stringify(together)}\n`)
  return program
}

/** Shows where the time goes, so that a new test that takes long is noticed. */
function longestFiles(seconds: ReadonlyMap<string, number>): string {
  const longestFirst = [...seconds].sort((a, b) => b[1] - a[1])
  const lines = longestFirst.slice(0, longestShown).map(([file, s]) => `  ${s.toFixed(0)} s ${file}`)
  return ['ℹ the files that took longest', ...lines, ''].join('\n')
}

/**
 * Returns how a process of the run ended, or null for the failure of a test in it. Node's reporter does not
 * show it: a process that crashed after its last test would look like one whose test failed.
 */
function endOfProcess(error: object): string | null {
  const { exitCode, signal } = error as { exitCode?: number | null; signal?: NodeJS.Signals | null }
  if (typeof signal === 'string') return `signal ${signal}`
  return typeof exitCode === 'number' ? `exit code ${exitCode}` : null
}

/** Returns whether all tests of the round passed. */
function runRound({ plane, files: tests }: Round): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'lethe-test-run-'))
  process.env.LETHE_TEST_CONTROL_PLANE = plane
  const ended = new Promise<boolean>((resolve, reject) => {
    const results = run({
      cwd: root,
      files: planProcesses(tests).map((files) => programOf(files, folder)),
      concurrency: processesAtOnce,
      signal: AbortSignal.any([stopped.signal, AbortSignal.timeout(wholeRunMs)]),
    })
    let passed = false
    const ends: string[] = []
    // An error outside a test fails its process, and is reported where nobody looks for it.
    results.on('test:diagnostic', ({ message }) => {
      if (message.startsWith('Error: ')) ends.push(`  ${message}`)
    })
    const seconds = new Map<string, number>()
    // Each test of a file has this event, and the file itself.
    results.on('test:complete', ({ name, details }) => {
      const file = name.startsWith(root) ? relative(root, name) : name
      if (tests.includes(file)) seconds.set(file, details.duration_ms / 1000)
    })
    results.on('test:fail', ({ name, details }) => {
      const end = endOfProcess(details.error)
      if (end !== null) ends.push(`  ${basename(name)}: ${end}`)
    })
    results.on('test:summary', ({ file, success }) => {
      if (file === undefined) passed = success
    })
    results
      .compose(spec)
      .on('error', reject)
      .on('end', () => {
        if (tests.length > longestShown) process.stdout.write(longestFiles(seconds))
        if (ends.length > 0) process.stdout.write(['ℹ how processes failed', ...ends, ''].join('\n'))
        resolve(passed)
      })
      .pipe(process.stdout, { end: false })
  })
  return ended.finally(() => rmSync(folder, { recursive: true, force: true }))
}

/** Aborted where somebody ends the run. Ctrl-C comes twice: from the terminal, and from scripts/run.mjs. */
const stopped = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopped.abort())

async function runAll(): Promise<number> {
  const rounds = planRounds()
  const isServed = rounds.some(({ plane, files: tests }) => plane === 'postgres' || tests.some(needsServer))
  const server = isServed ? await startPostgres() : null
  try {
    if (server !== null) {
      await createTemplate(server.folder)
      process.env[folderVariable] = server.folder
    }
    let passed = true
    for (const round of rounds) {
      if (stopped.signal.aborted) break
      if (rounds.length > 1) process.stdout.write(`\n# control plane: ${round.plane}\n`)
      passed = (await runRound(round)) && passed
    }
    return passed ? 0 : 1
  } finally {
    await server?.stop()
  }
}

process.exitCode = await runAll().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  return 1
})
