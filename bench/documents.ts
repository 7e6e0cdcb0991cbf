// The documents that are made from the list of benches and from results: docs/performance.md and
// bench/README.md. `npm run bench -- --document` writes them, and a test fails where one is outdated.

import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Bench, benches } from './benches.ts'
import { type Result, readResults } from './results.ts'
import { markdownOf, tablesOf } from './tables.ts'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** The text of each document by its path. */
export function documents(): ReadonlyMap<string, string> {
  const results = readResults()
  return new Map([
    [join(root, 'docs', 'performance.md'), performanceText(results)],
    [join(root, 'bench', 'README.md'), readmeText()],
  ])
}

const rooms: Readonly<Record<string, string>> = {
  ingest: 'Ingest',
  deletion: 'Erasure',
  query: 'Reading',
  detection: 'Detection',
  storage: 'Storage',
  console: 'Console',
  control: 'Control plane',
  neighbours: 'Neighbours',
}

const roomOf = ({ name }: Bench): string => name.split('/')[0] ?? name

export function performanceText(results: ReadonlyMap<string, Result>): string {
  const parts = Object.entries(rooms).flatMap(([room, title]) => [
    `## ${title}`,
    ...benches
      .filter((bench) => roomOf(bench) === room)
      .flatMap((bench) => sectionOf(bench, results.get(bench.name))),
  ])
  return `${[
    '# Performance',
    'Measurements of Lethe today. This page is made from the files in [bench/results](../bench/results) by ' +
      '`npm run bench -- --document`; [bench/README.md](../bench/README.md) says what each bench measures and how to run it. ' +
      'Times depend on the machine, so compare figures of one run; a load average above the number of cores changes times more than ratios. ' +
      'The reasons, and what was tried instead, are in [decisions](decisions).',
    ...parts,
  ].join('\n\n')}\n`
}

function sectionOf(bench: Bench, result: Result | undefined): string[] {
  const head = [`### ${bench.name}`, `${capitalised(bench.measures)}. ${bench.reading}`]
  if (result === undefined) return [...head, `Not measured yet: \`${commandOf(bench)}\`.`]
  const { commit, is_changed, load_average, machine, measured_at } = result
  const place = `${machine.cores} cores of ${machine.cpu}, ${machine.memory_gib} GiB, Node ${machine.node.replace(/^v/, '')}`
  const provenance =
    `\`${commandOf(bench)}\`, ${measured_at.slice(0, 10)}, commit ${commit}${is_changed ? ' with changes' : ''}, ` +
    `${place}, load average ${load_average} before.`
  const absent = result.absent.map(({ absent: what, why }) => `Not measured: ${what}, because ${why}.`)
  return [...head, provenance, ...absent, ...tablesOf(result.rows).map(markdownOf)]
}

const commandOf = ({ name }: Bench): string => `npm run bench ${name}`

function readmeText(): string {
  const total = benches.reduce((sum, { minutes }) => sum + minutes, 0)
  const lines = benches.map(({ name, measures, minutes, wants }) =>
    [`\`${name}\``, measures, `${minutes} min`, wants ?? ''].join(' | '),
  )
  return `# Benches

Each bench measures something that the README, the documents or a decision claims. The table is made from
[benches.ts](benches.ts) by \`npm run bench -- --document\`.

| bench | measures | takes about | wants |
| --- | --- | --- | --- |
${lines.map((line) => `| ${line} |`).join('\n')}

## How to run one

| | |
| --- | --- |
| \`npm run bench\` | the list |
| \`npm run bench ingest/http\` | measures it as documented, prints tables and stores the result |
| \`npm run bench -- ingest/http --seconds 5\` | with your own arguments: prints, stores nothing. The head of its file lists the arguments |
| \`npm run bench -- ingest/http --smallest\` | runs each part once in a minute or two, to check that it works; its figures mean nothing |
| \`npm run bench -- --all\` | all of them, one after the other, then the documents: about ${Math.ceil(total / 60)} hours |
| \`npm run bench -- --missing\` | the same for benches without a result |
| \`npm run bench -- --document\` | writes [docs/performance.md](../docs/performance.md) and this page |

A benchmark needs a machine that does nothing else. Data is stored below the folder for temporary files (\`TMPDIR\`),
up to some 20 GB; \`--root\` names another folder where a bench supports it. Stores that are not installed are left
out and named in the result; all of them are Debian packages: \`postgresql prometheus influxdb victoria-metrics\`.

## Results

[results](results) has the newest result of each bench: its rows, the arguments, the commit, the machine and the load before it
began. Only a complete run with the documented arguments writes there.

## How one is written

A bench is a program of this folder that is listed in [benches.ts](benches.ts). It reports its figures as rows of
named tables with \`report\` of [report.ts](report.ts); the name of a column has its unit. Inputs are seeded. A figure
that depends on the machine is beside a baseline of the same run. Each other store has one file in [peers](peers).

A bench that compares several ways is removed after one is chosen. Its figures go to the decision, with the commit that
measured them.
`
}

const capitalised = (sentence: string): string => `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}`
