// Another common store for comparison: a temporary server on loopback in a scratch folder, started by the
// bench and ended by its process id, also when the bench ends first.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, openSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Program {
  readonly name: string
  /** Full paths of the required programs. */
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

/** Starts a program whose output is written to a file beside its data. */
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

/** Returns a loopback port that is free at this moment. */
export async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  if (address === null || typeof address === 'string') throw new Error('No port.')
  return address.port
}

/** Repeats the call until it succeeds, for a minute. */
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

/** Sends an HTTP request that must succeed, and reads its response completely. */
export async function expect200(url: string, request: RequestInit): Promise<void> {
  const answer = await fetch(url, request)
  const body = await answer.text()
  if (!answer.ok) throw new Error(`${url} returned ${answer.status}: ${body.slice(0, 300)}`)
}
