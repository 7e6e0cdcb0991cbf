// A store that others run, as the benchmarks beside it start one: a throw-away server on loopback in a
// scratch folder, started by the benchmark and ended by its process id, also when the benchmark ends first.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, openSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Program {
  readonly name: string
  /** Full paths of what has to be there. */
  readonly programs: readonly string[]
}

export function isInstalled({ programs }: Program): boolean {
  return programs.every((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

export interface Server {
  readonly pid: number
  readonly stop: (signal?: NodeJS.Signals) => Promise<void>
}

/** Starts a program whose output goes to a file beside its data. */
export function startServer(
  command: readonly [string, ...string[]],
  { folder, uid }: { readonly folder: string; readonly uid?: number },
): Server {
  const log = openSync(join(folder, 'server.log'), 'a')
  const [program, ...args] = command
  const child: ChildProcess = spawn(program, args, {
    cwd: folder,
    stdio: ['ignore', log, log],
    ...(uid !== undefined && { uid, gid: uid }),
  })
  const ended = once(child, 'exit')
  const kill = () => child.kill('SIGKILL')
  process.on('exit', kill)
  if (child.pid === undefined) throw new Error(`${program} did not start.`)
  return {
    pid: child.pid,
    stop: async (signal = 'SIGTERM') => {
      child.kill(signal)
      await ended
      process.off('exit', kill)
    },
  }
}

/** A port of loopback that nobody uses at this moment. */
export async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  if (address === null || typeof address === 'string') throw new Error('No port.')
  return address.port
}

/** Asks until the answer is a success, for a minute. */
export async function untilReady(ask: () => Promise<unknown>): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      await ask()
      return
    } catch (error) {
      if (tries > 600) throw error
      await sleep(100)
    }
  }
}
