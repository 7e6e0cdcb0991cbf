// The machine and the commit of a measurement, so that figures of two machines or two commits are not
// compared by mistake.

import { execFileSync } from 'node:child_process'
import { cpus, loadavg, totalmem } from 'node:os'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

interface Provenance {
  /** Short hash of the measured checkout. */
  readonly commit: string
  readonly node: string
  readonly cpu: string
  readonly cores: number
  readonly memoryGib: number
  /** Of the minute before. Above the number of cores it makes times longer; ratios change less. */
  readonly loadAverage: number
}

const root = dirname(dirname(fileURLToPath(import.meta.url)))

export function provenance(): Provenance {
  return {
    commit: git('rev-parse', '--short', 'HEAD'),
    node: process.version,
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    loadAverage: Math.round((loadavg()[0] ?? 0) * 10) / 10,
  }
}

/** Whether tracked files differ from the commit, without results and the documents made from them. */
export function isChanged(): boolean {
  const made = [':(exclude)bench/results', ':(exclude)bench/README.md', ':(exclude)docs/performance.md']
  return git('status', '--porcelain', '--untracked-files=no', '--', '.', ...made) !== ''
}

function git(...args: readonly string[]): string {
  return execFileSync('git', ['-C', root, ...args], { encoding: 'utf8' }).trim()
}
