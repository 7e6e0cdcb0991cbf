// Runs the command line in its own process until it ends.

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const program = fileURLToPath(new URL('../../server/cli/lethe.ts', import.meta.url))
export const nodeFlags = ['--disable-warning=ExperimentalWarning'] as const
export const nodeWords = [...nodeFlags, program] as const

/** What every process of a test gets: without the cache each one compiles the whole program again. */
export const nodeEnvironment = { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE } as const

export interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** `input` is its standard input; empty where absent. */
export function runLethe(
  env: Readonly<Record<string, string | undefined>>,
  words: readonly string[],
  input = '',
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const options = { env: { ...nodeEnvironment, ...env } }
    const child = execFile(process.execPath, [...nodeWords, ...words], options, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code
      if (typeof code !== 'number') return reject(error ?? new Error('It ended without a code.'))
      resolve({ code, out: stdout.trim(), err: stderr.trim() })
    })
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })
}
