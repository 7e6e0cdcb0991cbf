// Runs the command line until it ends: in one process for all commands of a test file, because the start of a
// process costs more than most commands, or in a process of its own.

import { type ChildProcess, execFile, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { LeftOpen, Order } from './command-line-child.ts'

const program = fileURLToPath(new URL('../../server/cli/lethe.ts', import.meta.url))
const childProgram = fileURLToPath(new URL('command-line-child.ts', import.meta.url))
export const nodeFlags = ['--disable-warning=ExperimentalWarning'] as const
export const nodeWords = [...nodeFlags, program] as const

/** What every process of a test gets: without the cache each one compiles the whole program again. */
export const nodeEnvironment = { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE } as const

export interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Settings by their environment variable. */
type Environment = Readonly<Record<string, string | undefined>>

let shared: ChildProcess | null = null
/** Resolves when the last command that was requested of the shared process has ended. */
let last: Promise<unknown> = Promise.resolve()

/**
 * Runs a command in the shared process, after those before it; the service in a process of its own. `input`
 * is its standard input; empty where absent.
 */
export function runLethe(env: Environment, words: readonly string[], input = ''): Promise<Ended> {
  if (words[0] === 'serve') return runAlone(env, words, input)
  const ended = last.then(() => runShared({ env, words, input }))
  last = ended.catch(() => {})
  return ended
}

/** Runs a command in a process of its own. */
export function runAlone(env: Environment, words: readonly string[], input = ''): Promise<Ended> {
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

/** The shared process keeps this one alive only while a command runs, and ends after it. */
function runShared(order: Order): Promise<Ended> {
  const child =
    shared ?? fork(childProgram, { execArgv: [...nodeFlags], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  shared = child
  child.ref()
  child.channel?.ref()
  return new Promise<Ended>((resolve, reject) => {
    const fail = (code: number | null) => {
      shared = null
      reject(new Error(`The process of the commands ended with ${code} at: ${order.words.join(' ')}`))
    }
    child.once('exit', fail)
    child.once('message', (ended: Ended | LeftOpen) => {
      child.off('exit', fail)
      if ('leftOpen' in ended) {
        shared = null
        child.kill()
        const open = ended.leftOpen.join(', ')
        return reject(new Error(`${order.words.join(' ')} has ended and left this open: ${open}`))
      }
      child.unref()
      child.channel?.unref()
      resolve(ended)
    })
    child.send(order)
  })
}
