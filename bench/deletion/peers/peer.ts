// What the stores that others run have in common here: a throw-away server on loopback in a scratch folder, started
// by this benchmark and ended by its process id; the same points as the product's gauges and counters, as text
// that our engine writes; and the clients that measure what neighbours feel.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, openSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Session } from 'chdb'
import type { Erasure } from '../erasure.ts'
import type { Clients } from '../load.ts'
import { type History, historyDays, organisationCount, pointSelect, type Slice } from '../rows.ts'

export interface PeerOptions {
  /** Empty; everything the store keeps goes below it. */
  readonly folder: string
  readonly history: History
}

export interface OpenPeer {
  readonly version: string
  readonly dataFolder: string
  readonly clients: Clients
  /** Ways of erasing an organisation, in the order in which they are tried. */
  readonly ways: readonly {
    readonly name: string
    readonly erase: (organisation: number, limitMs: number) => Promise<Erasure>
  }[]
  readonly stop: () => Promise<void>
}

export interface Peer {
  readonly name: string
  /** Full paths of what has to be there. */
  readonly programs: readonly string[]
  /** Starts it and loads every point of the history. */
  readonly open: (options: PeerOptions) => Promise<OpenPeer>
}

export function isInstalled({ programs }: Peer): boolean {
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

/**
 * Writes the points as text, one file after the other, each an organisation's whole history or, where `by` says so,
 * everybody's day, and hands each over while the next is written. `line` is an expression over the columns of
 * `pointSelect`. A file is removed when it was taken.
 */
export async function feed(
  { folder, history }: Pick<PeerOptions, 'folder' | 'history'>,
  line: string,
  by: 'organisation' | 'day',
  take: (file: string) => Promise<void>,
): Promise<void> {
  const session = new Session()
  let taken: Promise<void> = Promise.resolve()
  try {
    for (const [i, slices] of portions(by).entries()) {
      const file = join(folder, `points-${i % 2}-${i}.txt`)
      const points = slices.map((slice) => pointSelect(history, slice)).join(' UNION ALL ')
      await session.queryAsync(
        `INSERT INTO FUNCTION file('${file}', 'LineAsString', 'line String') SELECT ${line} FROM (${points})
          SETTINGS max_threads = 1`,
      )
      await taken
      taken = take(file).finally(() => rmSync(file, { force: true }))
      taken.catch(() => {})
    }
    await taken
  } finally {
    session.close()
  }
}

function portions(by: 'organisation' | 'day'): Slice[][] {
  const organisations = Array.from({ length: organisationCount }, (_, organisation) => organisation)
  if (by === 'organisation')
    return organisations.map((organisation) => [{ organisation, fromDay: 0, toDay: historyDays }])
  return Array.from({ length: historyDays }, (_, day) =>
    organisations.map((organisation) => ({ organisation, fromDay: day, toDay: day + 1 })),
  )
}

/** Labels as Prometheus and its kin write them. */
export const labelledMetric = `concat(replaceAll(metric, '.', '_'), '{tenant="', tenant, '",service="', service,
  '",host="', host, '",route="', route, '"}')`
