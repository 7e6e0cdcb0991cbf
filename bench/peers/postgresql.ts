// PostgreSQL of Debian as a benchmark starts it: a cluster of its own that listens on a socket in its folder
// only, and sessions of psql that stay open, so that what their server processes use can be counted.

import { execFileSync, spawn } from 'node:child_process'
import { chownSync, globSync, mkdirSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { freePort, type Server, startServer, untilReady } from './server.ts'

const bin = globSync('/usr/lib/postgresql/*/bin').at(-1) ?? '/usr/lib/postgresql'

export const postgresPrograms = [`${bin}/postgres`, `${bin}/initdb`, `${bin}/psql`]

export function postgresVersion(): string {
  return execFileSync(`${bin}/postgres`, ['--version'], { encoding: 'utf8' }).trim()
}

/** A command whose standard input is statements. */
export type PsqlCommand = readonly [string, ...string[]]

interface Postgres {
  readonly server: Server
  readonly psql: PsqlCommand
}

export async function startPostgres({
  folder,
  dataFolder,
  settings,
}: {
  readonly folder: string
  /** Below the folder; must not exist. */
  readonly dataFolder: string
  /** Beside a gigabyte of shared buffers and a log for this machine only. */
  readonly settings: Readonly<Record<string, string>>
}): Promise<Postgres> {
  const uid = serverUser()
  mkdirSync(dataFolder)
  if (uid !== undefined) chownSync(folder, uid, uid)
  if (uid !== undefined) chownSync(dataFolder, uid, uid)
  const as = uid === undefined ? {} : { uid, gid: uid }
  execFileSync(`${bin}/initdb`, ['-D', dataFolder, '-A', 'trust', '-U', 'bench'], { ...as, cwd: folder })
  const port = await freePort()
  const server = startServer(
    [`${bin}/postgres`, '-D', dataFolder, ...settingFlags({ folder, port, settings })],
    { folder, ...(uid !== undefined && { uid }) },
  )
  await untilReady(async () =>
    execFileSync(`${bin}/pg_isready`, ['-h', folder, '-p', String(port)], { stdio: 'ignore' }),
  )
  return { server, psql: [`${bin}/psql`, '-h', folder, '-p', String(port), '-U', 'bench', 'postgres'] }
}

/** It refuses to run as root; Debian's package brings a user for it. */
function serverUser(): number | undefined {
  if (process.getuid?.() !== 0) return undefined
  return Number(execFileSync('id', ['-u', 'postgres'], { encoding: 'utf8' }))
}

function settingFlags(own: {
  readonly folder: string
  readonly port: number
  readonly settings: Readonly<Record<string, string>>
}): string[] {
  const settings = {
    port: own.port,
    listen_addresses: '',
    unix_socket_directories: own.folder,
    shared_buffers: '1GB',
    maintenance_work_mem: '512MB',
    wal_level: 'minimal',
    max_wal_senders: 0,
    ...own.settings,
  }
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

interface PsqlSession {
  /** Runs statements, each in a transaction of its own; rejects with what the server says. */
  readonly run: (statements: string) => Promise<void>
  readonly close: () => void
}

/** One connection that stays open, so that what its server process writes can be counted. */
export function openSession([program, ...args]: PsqlCommand): PsqlSession {
  const child = spawn(program, [...args, '-X', '-q', '-At', '-o', '/dev/null'], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let complaint = ''
  const waiting: (() => void)[] = []
  child.stderr.on('data', (text) => {
    complaint += text
  })
  createInterface({ input: child.stdout }).on('line', () => waiting.shift()?.())
  return {
    run: async (statements) => {
      const answered = new Promise<void>((resolve) => waiting.push(resolve))
      child.stdin.write(`${statements}\n\\echo done\n`)
      await answered
      const said = complaint
      complaint = ''
      if (/ERROR|FATAL/.test(said)) throw new Error(said.slice(0, 500))
    },
    close: () => child.stdin.end(),
  }
}
