// Results of benches, as files in bench/results: the newest of each, with the commit and the machine.
// docs/performance.md is made from these files, so only a complete run with the arguments of bench/benches.ts
// writes one.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { type Bench, benches } from './benches.ts'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const folder = join(root, 'bench', 'results')

/** A row as a bench wrote it: `table` is the name of its table, all other fields are its cells. */
const ResultRow = z.looseObject({ table: z.string().optional() })
export type ResultRow = z.infer<typeof ResultRow>

const Absent = z.strictObject({ absent: z.string(), why: z.string() })

const Result = z.strictObject({
  bench: z.string(),
  measured_at: z.iso.datetime(),
  commit: z.string(),
  /** Whether tracked files differed from the commit. */
  is_changed: z.boolean(),
  args: z.array(z.string()),
  seconds: z.number(),
  load_average: z.number(),
  machine: z.strictObject({
    cpu: z.string(),
    cores: z.number(),
    memory_gib: z.number(),
    node: z.string(),
  }),
  /** What could not be measured there, and why. */
  absent: z.array(Absent),
  rows: z.array(ResultRow),
})
export type Result = z.infer<typeof Result>

/**
 * Parses the standard output of a bench into rows and absent parts. Lines that are not JSON objects are
 * returned as `other`.
 */
export function readOutput(text: string): Pick<Result, 'absent' | 'rows'> & { readonly other: string[] } {
  const [absent, rows, other]: [Result['absent'], ResultRow[], string[]] = [[], [], []]
  for (const line of text.split('\n').filter((each) => each.trim() !== '')) {
    const value = line.startsWith('{') ? JSON.parse(line) : null
    const missing = Absent.safeParse(value)
    if (missing.success) absent.push(missing.data)
    else if (value === null) other.push(line)
    else rows.push(ResultRow.parse(value))
  }
  return { absent, rows, other }
}

/** Overwrites the previous result. */
export function keepResult(result: Result): string {
  mkdirSync(folder, { recursive: true })
  const path = pathOf(result.bench)
  const { absent, rows, ...head } = Result.parse(result)
  const list = (items: readonly object[]) =>
    items.length === 0 ? '[]' : `[\n${items.map((item) => `    ${JSON.stringify(item)}`).join(',\n')}\n  ]`
  const text = JSON.stringify(head, null, 2).replace(/\n\}$/, '')
  writeFileSync(path, `${text},\n  "absent": ${list(absent)},\n  "rows": ${list(rows)}\n}\n`)
  return path
}

/** Results by name; a bench that was never measured has none. Throws where a file is invalid. */
export function readResults(): ReadonlyMap<string, Result> {
  return new Map(
    benches.flatMap(({ name }): [string, Result][] => {
      const path = pathOf(name)
      if (!existsSync(path)) return []
      const result = Result.parse(JSON.parse(readFileSync(path, 'utf8')))
      if (result.bench !== name) throw new Error(`${path} is a result of ${result.bench}`)
      return [[name, result]]
    }),
  )
}

/** The program of a bench. */
export function programOf({ name }: Pick<Bench, 'name'>): string {
  const path = join(root, 'bench', `${name}.ts`)
  return existsSync(path) ? path : join(root, 'bench', name, `${name}.ts`)
}

function pathOf(name: string): string {
  return join(folder, `${name.replaceAll('/', '-')}.json`)
}
