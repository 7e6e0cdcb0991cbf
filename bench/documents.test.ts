// The list of benches against the existing programs, and the documents that are made from the list and from
// results.

import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Bench, benches } from './benches.ts'
import { documents, performanceText } from './documents.ts'
import { programOf, type Result, readOutput, readResults } from './results.ts'
import { cellText, markdownOf, tablesOf } from './tables.ts'

const folder = dirname(fileURLToPath(import.meta.url))

const resultOf = ({ name }: Pick<Bench, 'name'>, rows: Result['rows']): Result => ({
  bench: name,
  measured_at: '2026-11-20T08:00:00.000Z',
  commit: 'abc1234',
  is_changed: false,
  args: [],
  seconds: 60,
  load_average: 0.4,
  machine: { cpu: 'A processor', cores: 2, memory_gib: 8, node: 'v24.21.0' },
  absent: [{ absent: 'InfluxDB', why: 'it is not installed' }],
  rows,
})

test('every document agrees with the benches and their results', () => {
  for (const [path, text] of documents()) {
    const name = relative(dirname(folder), path)
    assert.ok(existsSync(path), `${name} does not exist: npm run bench -- --document`)
    assert.equal(readFileSync(path, 'utf8'), text, `${name} is outdated: npm run bench -- --document`)
  }
})

test('the list has every program of the folder, and no other', () => {
  const sources = globSync('**/*.ts', { cwd: folder }).map((path) => join(folder, path))
  const started = new Set(
    sources.flatMap((path) =>
      [...readFileSync(path, 'utf8').matchAll(/(?:from |new URL\()'(\.[^']*\.ts|[\w-]+\.ts)'/g)].map(
        ([, target = '']) => resolve(dirname(path), target),
      ),
    ),
  )
  const testsAndScripts = globSync('{scripts,tests,server}/**/*.ts', { cwd: dirname(folder) })
    .map((path) => join(dirname(folder), path))
    .flatMap((path) =>
      [...readFileSync(path, 'utf8').matchAll(/from '(\.[^']*\/bench\/[^']*\.ts)'/g)].map(([, target = '']) =>
        resolve(dirname(path), target),
      ),
    )
  const used = new Set([...started, ...testsAndScripts])
  const programs = sources.filter(
    (path) => !used.has(path) && !path.endsWith('.test.ts') && !path.endsWith('-child.ts'),
  )
  assert.deepEqual(programs.sort(), benches.map(programOf).sort())
})

test('every result belongs to a bench of the list and was measured with its arguments', () => {
  const files = globSync('results/*.json', { cwd: folder })
  const results = readResults()
  assert.equal(results.size, files.length, `${files.join(', ')} against ${[...results.keys()].join(', ')}`)
  for (const { args, name } of benches) {
    const result = results.get(name)
    if (result !== undefined)
      assert.deepEqual(result.args, [...args], `${name} was measured with other arguments`)
  }
})

test('a bench without a result is shown as not measured, with the command that measures it', () => {
  const text = performanceText(new Map())
  for (const { name } of benches)
    assert.match(text, new RegExp(`### ${name}\n\n.*\n\nNot measured yet: \`npm run bench ${name}\`\\.`))
  assert.doesNotMatch(text, /commit [0-9a-f]{7}/)
})

test('a result is shown with its commit, its machine, absent parts, and its tables', () => {
  const [bench] = benches
  assert.ok(bench !== undefined)
  const rows = [
    { table: 'Rows a second', signal: 'logs', 'rows/s': 171234, ratio: 0.7412 },
    { table: 'In detail', refused: 0, synced: true },
    { table: 'Rows a second', signal: 'traces', 'rows/s': 340000, late: null },
  ]
  const text = performanceText(new Map([[bench.name, resultOf(bench, rows)]]))
  const section = text.slice(
    text.indexOf(`### ${bench.name}`),
    text.indexOf('### ', text.indexOf('### ') + 4),
  )
  assert.match(
    section,
    /2026-11-20, commit abc1234, 2 cores of A processor, 8 GiB, Node 24\.21\.0, load average 0\.4/,
  )
  assert.match(section, /Not measured: InfluxDB, because it is not installed\./)
  assert.ok(
    section.includes(
      [
        'Rows a second:',
        '',
        '| signal | rows/s | ratio | late |',
        '| --- | --- | --- | --- |',
        '| logs | 171,234 | 0.741 |  |',
        '| traces | 340,000 |  |  |',
        '',
        'In detail:',
        '',
        '| refused | synced |',
        '| --- | --- |',
        '| 0 | true |',
      ].join('\n'),
    ),
    section,
  )
  const changed = { ...resultOf(bench, rows), is_changed: true }
  assert.match(performanceText(new Map([[bench.name, changed]])), /commit abc1234 with changes/)
})

test('numbers have three significant digits, or all digits before the point, and no text breaks a table', () => {
  assert.deepEqual(
    [0, 7, 1234567, 0.03456, 12.345, 123.456, 4.0, null, undefined, 'a | b\nc'].map(cellText),
    ['0', '7', '1,234,567', '0.0346', '12.3', '123', '4', '', '', 'a \\| b c'],
  )
})

test('an attack is a row with the latencies without and with it', () => {
  const latency = (p99Ms: number | null) => ({ count: 1, p50Ms: 1, p99Ms })
  const attack = {
    attack: 'many-weeks',
    does: 'Points of many weeks.',
    calm: { ingest: latency(200), chart: latency(null) },
    attacked: { ingest: latency(1700), chart: latency(90) },
    refusals: { 'ingest 503': 2, 'chart 503': 1 },
    peakMb: 900,
    recoverySeconds: null,
    missed: ['ingest 1.7 s'],
    trials: 3,
    trialsMissed: 2,
  }
  const [table] = tablesOf([attack])
  assert.ok(table !== undefined)
  assert.deepEqual(markdownOf(table).split('\n').slice(2), [
    '| attack | ingest p99 ms | chart p99 ms | refused | peak MB | charts quick again after s | missed | trials that missed |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
    '| many-weeks | 200 → 1,700 | – → 90 | 3 | 900 | not in 30 | ingest 1.7 s | 2 of 3 |',
  ])
})

test('rows, absent parts and other lines are separated in the output of a bench', () => {
  const text = '{"table":"A","b":1}\n\nattack: what it does\n{"absent":"NAB","why":"its data is not there"}\n'
  assert.deepEqual(readOutput(text), {
    rows: [{ table: 'A', b: 1 }],
    absent: [{ absent: 'NAB', why: 'its data is not there' }],
    other: ['attack: what it does'],
  })
  assert.throws(() => readOutput('{"table":"A",'), SyntaxError)
})
