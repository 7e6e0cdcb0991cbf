// How long the command line takes to say something, beside a Node that does nothing: `--version`, help,
// completion, and a command that opens the control plane. Each round runs all of them in turn, so that
// whatever else the machine does falls on all alike. Prints the median of each and its ratio to the
// bare Node of the same runs.
//
//   node scripts/run.mjs bench/cli/start.ts [rounds]

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const lethe = fileURLToPath(new URL('../../lethe', import.meta.url))
const rounds = Number(process.argv[2] ?? 15)

/** As a person's shell has it: without what `npm` and our own start put in front. */
const path = (process.env.PATH ?? '')
  .split(':')
  .filter((folder) => !folder.includes('node_modules'))
  .join(':')

const commands: Readonly<Record<string, readonly [string, ...string[]]>> = {
  'node -e 0 (baseline)': ['node', '-e', '0'],
  'lethe --version': [lethe, '--version'],
  'lethe --help': [lethe, '--help'],
  'lethe complete': [lethe, 'complete', '--', 'token', ''],
  'lethe usage (refused: no token)': [lethe, 'usage'],
}

function secondsOf([program, ...words]: readonly [string, ...string[]]): number {
  const begun = process.hrtime.bigint()
  spawnSync(program, words, { env: { PATH: path, HOME: join(lethe, 'nowhere') }, stdio: 'ignore' })
  return Number(process.hrtime.bigint() - begun) / 1e9
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

const taken = new Map(Object.keys(commands).map((name) => [name, [] as number[]]))
// The first round fills Node's cache of compiled code and is not counted.
for (let round = 0; round <= rounds; round++) {
  for (const [name, words] of Object.entries(commands)) {
    const seconds = secondsOf(words)
    if (round > 0) taken.get(name)?.push(seconds)
  }
}
const baseline = median(taken.get('node -e 0 (baseline)') ?? [])
for (const [name, seconds] of taken) {
  const [middle, least] = [median(seconds), Math.min(...seconds)]
  process.stdout.write(
    `${name.padEnd(34)} median ${middle.toFixed(3)} s, least ${least.toFixed(3)} s, ${(middle / baseline).toFixed(1)} times the baseline\n`,
  )
}
