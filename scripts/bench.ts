// Runs benches by name, stores their results and writes the documents that are made from results.
// bench/README.md says how to use it. A result is stored only from a complete run with the documented
// arguments, so that all figures in docs/performance.md are comparable.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { type Bench, benches, benchNamed } from '../bench/benches.ts'
import { documents } from '../bench/documents.ts'
import { isChanged, provenance } from '../bench/provenance.ts'
import { keepResult, programOf, type Result, readOutput, readResults } from '../bench/results.ts'
import { cellText, markdownOf, tablesOf } from '../bench/tables.ts'
import nodeFlags from './node-flags.json' with { type: 'json' }

// A reader that closes the output early, such as `head`, ends neither this nor a bench: results are written
// to files.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

const [first = '', ...rest] = process.argv.slice(2)
process.exitCode = await main()

async function main(): Promise<number> {
  if (first === '') {
    process.stdout.write(`${listText()}\n`)
    return 0
  }
  if (first === '--document') return writeDocuments()
  if (first === '--all') return runMany(benches)
  if (first === '--missing') {
    const measured = readResults()
    return runMany(benches.filter(({ name }) => !measured.has(name)))
  }
  const bench = benchNamed(first)
  if (bench === undefined) {
    say(`There is no bench ${first}.\n\n${listText()}`)
    return 2
  }
  const isSmallest = rest.includes('--smallest')
  const own = rest.filter((arg) => arg !== '--smallest')
  if (isSmallest || own.length > 0)
    return (await run(bench, isSmallest ? [...bench.smallest.split(' '), ...own] : own)).status
  const status = await measure(bench)
  writeDocuments()
  return status
}

function listText(): string {
  const width = Math.max(...benches.map(({ name }) => name.length))
  const lines = benches.map(
    ({ measures, minutes, name }) => `${name.padEnd(width)}  ${`${minutes} min`.padStart(6)}  ${measures}`,
  )
  return `npm run bench NAME measures one of these. bench/README.md has more.\n\n${lines.join('\n')}`
}

/** Runs benches one after the other; a failed one does not stop the others. */
async function runMany(chosen: readonly Bench[]): Promise<number> {
  const failed: string[] = []
  for (const bench of chosen) if ((await measure(bench)) !== 0) failed.push(bench.name)
  writeDocuments()
  if (failed.length > 0) say(`Not measured: ${failed.join(', ')}.`)
  return failed.length > 0 ? 1 : 0
}

/** Runs a bench as documented and stores its result, if the bench succeeded and measured something. */
async function measure(bench: Bench): Promise<number> {
  const measuredAt = new Date().toISOString()
  const { commit, cores, cpu, loadAverage, memoryGib, node } = provenance()
  const changed = isChanged()
  const { absent, rows, seconds, status } = await run(bench, bench.args)
  if (status !== 0 || rows.length === 0) {
    say(
      `${bench.name}: no result is stored, because ${status === 0 ? 'nothing was measured' : `it ended with ${status}`}.`,
    )
    return status === 0 ? 1 : status
  }
  const path = keepResult({
    bench: bench.name,
    measured_at: measuredAt,
    commit,
    is_changed: changed,
    args: [...bench.args],
    seconds,
    load_average: loadAverage,
    machine: { cpu, cores, memory_gib: memoryGib, node },
    absent,
    rows,
  })
  say(`${bench.name}: stored as ${path}`)
  return 0
}

interface Run extends Pick<Result, 'absent' | 'rows'> {
  readonly status: number
  readonly seconds: number
}

/** Runs the program of a bench and prints what it measured. */
async function run(bench: Bench, args: readonly string[]): Promise<Run> {
  say(`${bench.name} ${args.join(' ')}`.trimEnd())
  const startMs = performance.now()
  const child = spawn(process.execPath, [...nodeFlags, programOf(bench), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  // The child gets Ctrl-C too, and it has servers to stop; this process waits until it has ended.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => child.kill(signal))
  const lines: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line)
    for (const { table: _, ...cells } of readOutput(line).rows)
      say(
        `  ${Object.values(cells)
          .filter((cell) => typeof cell !== 'object')
          .map(cellText)
          .join(', ')}`,
      )
  })
  const [code] = await once(child, 'close')
  const seconds = Math.round((performance.now() - startMs) / 1000)
  const { absent, other, rows } = readOutput(lines.join('\n'))
  for (const line of other) process.stdout.write(`${line}\n`)
  for (const { absent: what, why } of absent) say(`Not measured: ${what}, because ${why}.`)
  for (const table of tablesOf(rows)) process.stdout.write(`\n${markdownOf(table)}\n`)
  say(`\n${bench.name}: ${seconds} s`)
  return { absent, rows, seconds, status: typeof code === 'number' ? code : 1 }
}

function writeDocuments(): number {
  for (const [path, text] of documents()) writeFileSync(path, text)
  return 0
}

function say(text: string): void {
  process.stderr.write(`${text}\n`)
}
