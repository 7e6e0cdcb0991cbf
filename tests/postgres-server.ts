// The PostgreSQL server of a test run: Debian's program in a temporary folder, with a socket in that folder
// and no port. It does not sync, because no test needs its data after a power loss. Its databases sort text
// by the rules of a language, so that a query that relies on byte order without asking for it fails a test.

import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'

/** The folder of the run's server: scripts/test.ts sets it for the tests. */
export const folderVariable = 'LETHE_TEST_POSTGRES'

/** The role of tests. Only this user of the machine can open the socket, so it has no password. */
export const role = 'lethe'

/** A role that a test may create, and that has to give its password. */
export const roleWithPassword = 'lethe_with_password'

/** Where Debian installs the programs of each version. */
const debianFolder = '/usr/lib/postgresql'

export interface PostgresServer {
  /** Contains the socket, and the files of the server in `data`. */
  readonly folder: string
  readonly socketPath: string
  /**
   * Ends the server without waiting for its clients, runs `work` on its files, and starts it again. What
   * `work` puts there belongs to the user of the server.
   */
  whileStopped(work: (data: string) => void | Promise<void>): Promise<void>
  /** Ends the server at once, as a crash does: its clients and standbys get no message. */
  crash(): Promise<void>
  /** Ends the server and removes its folder. */
  stop(): Promise<void>
}

/** Returns the path of a program of the newest version. Throws where PostgreSQL is not installed. */
export function programOf(name: string): string {
  const versions = existsSync(debianFolder) ? readdirSync(debianFolder).map(Number) : []
  const found = versions
    .sort((a, b) => b - a)
    .map((version) => join(debianFolder, String(version), 'bin', name))
    .find((path) => existsSync(path))
  if (found !== undefined) return found
  throw new Error(
    `These tests need a PostgreSQL server, and ${debianFolder} has no program ${name}. Debian: apt-get install postgresql`,
  )
}

/** The server refuses to run as root, so root starts it as another user. */
function serverUser(): { uid: number; gid: number } | undefined {
  if (userInfo().uid !== 0) return undefined
  const users = readFileSync('/etc/passwd', 'utf8').split('\n')
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = users.find((line) => line.startsWith(`${name}:`))?.split(':') ?? []
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) }
  }
  throw new Error('PostgreSQL does not run as root, and this machine has no user postgres.')
}

const speed = {
  fsync: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_connections: '200',
  listen_addresses: '',
}

type Settings = Readonly<Record<string, string>>
type RunAs = { readonly cwd: string; readonly uid?: number; readonly gid?: number }

/** Starts a server with a new, empty folder. `settings` are those of postgresql.conf. */
export function startPostgres(settings: Settings = {}): Promise<PostgresServer> {
  return start(settings, async (data, runAs) => initialise(data, runAs))
}

/**
 * Starts a standby that receives what the primary writes, until `select pg_promote()`. The primary needs
 * `wal_level` replica and two `max_wal_senders`.
 */
export function startStandby(
  primary: Pick<PostgresServer, 'folder'>,
  settings: Settings,
): Promise<PostgresServer> {
  const words = ['-h', primary.folder, '-U', role, '-X', 'stream', '-c', 'fast', '--no-sync', '-R']
  return start(settings, async (data, runAs) => {
    await runFile(programOf('pg_basebackup'), [...words, '-D', data], runAs)
  })
}

/** Fills an empty folder with the files of a server without databases. */
function initialise(data: string, runAs: RunAs): void {
  const flags = ['--locale-provider=icu', '--icu-locale=en-US', '--locale=C.UTF-8', '--encoding=UTF8']
  const made = spawnSync(
    programOf('initdb'),
    ['-D', data, '-U', role, '--auth=trust', '--no-sync', '--no-instructions', ...flags],
    { ...runAs, encoding: 'utf8' },
  )
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`)
  const logins = join(data, 'pg_hba.conf')
  writeFileSync(logins, `local all ${roleWithPassword} scram-sha-256\n${readFileSync(logins, 'utf8')}`)
}

/** `fill` puts the files of a server into an empty folder. */
async function start(
  settings: Settings,
  fill: (data: string, runAs: RunAs) => Promise<void>,
): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'lethe-postgres-'))
  const user = serverUser()
  const data = join(folder, 'data')
  mkdirSync(data, { mode: 0o700 })
  if (user !== undefined) for (const path of [folder, data]) chownSync(path, user.uid, user.gid)
  await fill(data, { cwd: folder, ...user })
  const given = Object.entries({ ...speed, unix_socket_directories: folder, ...settings })
  const words = ['-D', data, ...given.flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  let child: ChildProcess | undefined
  const begin = async () => {
    child = spawn(programOf('postgres'), words, { cwd: folder, ...user, stdio: ['ignore', 'ignore', 'pipe'] })
    await untilReady(child)
  }
  const stop = async () => {
    if (child !== undefined) await end(child, 'SIGINT')
    rmSync(folder, { recursive: true, force: true })
  }
  const orStop = (error: unknown) =>
    stop().then(() => {
      throw error
    })
  await begin().catch(orStop)
  return {
    folder,
    socketPath: join(folder, '.s.PGSQL.5432'),
    stop,
    async crash() {
      if (child !== undefined) await end(child, 'SIGQUIT')
    },
    async whileStopped(work) {
      if (child !== undefined) await end(child, 'SIGINT')
      await work(data)
      if (user !== undefined) spawnSync('chown', ['-R', `${user.uid}:${user.gid}`, data])
      await begin().catch(orStop)
    },
  }
}

const runFile = promisify(execFile)

/** Runs statements as a superuser, outside every control plane. Returns what they print, without headings. */
export async function askServer(
  folder: string,
  database: string,
  ...statements: readonly string[]
): Promise<string> {
  const commands = statements.flatMap((statement) => ['-c', statement])
  const options = ['-v', 'ON_ERROR_STOP=1', '-Atq', '-h', folder, '-U', role, '-d', database]
  const { stdout } = await runFile(programOf('psql'), [...options, ...commands])
  return stdout.trim()
}

/** Resolves when the server logs that it accepts connections. */
function untilReady(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = ''
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = `${said}${text}`.slice(-10_000)
      if (/ready to accept (?:read-only )?connections/.test(said)) resolve()
    })
    child.once('error', reject)
    child.once('exit', () => reject(new Error(`PostgreSQL did not start: ${said}`)))
  })
}

/** SIGINT ends the server without waiting for its clients, SIGQUIT without writing anything either. */
function end(child: ChildProcess, signal: 'SIGINT' | 'SIGQUIT'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  return new Promise((resolve) => {
    child.once('exit', () => resolve())
    child.kill(signal)
  })
}

/** The folder of the run's server. Throws where the tests were started without one. */
export function runFolder(): string {
  const folder = process.env[folderVariable]
  if (folder !== undefined) return folder
  throw new Error('Tests on PostgreSQL need the server of a run: start them with npm test <file>.')
}
