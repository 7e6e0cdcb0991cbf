// PostgreSQL from Debian: its own cluster that listens only on a socket in its folder, and psql sessions that
// stay open, so that the use of their server processes can be counted. Ingest is COPY BINARY, a transaction
// for each body, into points with an index by series and time. The attributes of a series are in a separate
// table, filled before the timing begins: its clients know the number of a series, which the clients of the
// other stores need not know. Its log is not included in the merged bytes. Erasure is from points partitioned
// by day. DELETE only marks rows, VACUUM frees their space inside the files, and VACUUM FULL rewrites every
// partition under a lock that blocks readers. Automatic vacuuming is off there, so that each way is measured
// alone; the write-ahead log, which keeps erased rows for a while too, is not counted.

import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, chownSync, globSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { watchErasure } from '../deletion/erasure.ts'
import { filesUnder } from '../deletion/files.ts'
import { dayStart, historyDays, organisationCount } from '../deletion/rows.ts'
import { attributesOf } from '../ingest/peers/bodies.ts'
import { processesOf, type Shape } from '../ingest/peers/points.ts'
import { reportAbsent } from '../report.ts'
import { type ErasingStore, feed, type OpenErasingStore } from './erasing-store.ts'
import type { IngestStore, PsqlCommand } from './ingest-store.ts'
import { freePort, isInstalled, type Server, startServer, untilReady } from './server.ts'

const bin = globSync('/usr/lib/postgresql/*/bin').at(-1) ?? '/usr/lib/postgresql'

export const postgresPrograms = [`${bin}/postgres`, `${bin}/initdb`, `${bin}/psql`]

export function postgresVersion(): string {
  return execFileSync(`${bin}/postgres`, ['--version'], { encoding: 'utf8' }).trim()
}

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
  /** In addition to a gigabyte of shared buffers and a log for this machine only. */
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

/**
 * Runs work beside a PostgreSQL in a temporary folder below `root`, and removes both afterwards. Reports what
 * is not measured where PostgreSQL is not installed.
 */
export async function withPostgres(
  {
    root,
    settings,
    what,
  }: {
    readonly root: string
    readonly settings: Readonly<Record<string, string>>
    /** What is not measured without it, for the report. */
    readonly what: string
  },
  work: (server: { readonly psql: PsqlCommand; readonly folder: string }) => Promise<void>,
): Promise<void> {
  if (!isInstalled({ name: 'PostgreSQL', programs: postgresPrograms })) {
    reportAbsent(what, 'PostgreSQL is not installed')
    return
  }
  const folder = mkdtempSync(join(root, 'lethe-postgresql-bench-'))
  try {
    // PostgreSQL runs as another user.
    chmodSync(folder, 0o711)
    const own = join(folder, 'postgresql')
    mkdirSync(own)
    const { psql, server } = await startPostgres({ folder: own, dataFolder: join(own, 'data'), settings })
    try {
      await work({ psql, folder })
    } finally {
      await server.stop('SIGINT')
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Creates a database and returns its address. */
export function createDatabase([program, ...args]: PsqlCommand, name: string): string {
  const argumentOf = (flag: string) => args[args.indexOf(flag) + 1] ?? ''
  execFileSync(program, [...args, '-qc', `create database ${name}`])
  const host = encodeURIComponent(argumentOf('-h'))
  return `postgres://${argumentOf('-U')}@localhost:${argumentOf('-p')}/${name}?host=${host}`
}

/** It refuses to run as root; Debian's package creates a user for it. */
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
  /** Runs statements, each in its own transaction; rejects with the error of the server. */
  readonly run: (statements: string) => Promise<void>
  readonly close: () => void
}

/** One connection that stays open, so that the bytes written by its server process can be counted. */
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

const pointsSchemaText = `
  CREATE TABLE series (series_id int PRIMARY KEY, name text NOT NULL, attributes jsonb NOT NULL);
  CREATE TABLE points (series_id int NOT NULL, time timestamptz NOT NULL, value float8 NOT NULL);
  CREATE INDEX ON points (series_id, time);`

export const postgresqlIngest: IngestStore = {
  name: 'PostgreSQL',
  programs: postgresPrograms,
  format: 'postgres-copy',
  durability: 'synced at each commit',
  async open({ folder, shape }) {
    const dataFolder = join(folder, 'data')
    const { server, psql } = await startPostgres({ folder, dataFolder, settings: {} })
    const admin = openSession(psql)
    await admin.run(pointsSchemaText)
    for (let sender = 0; sender < shape.senders; sender++) await admin.run(insertSeries(shape, sender))
    const ask = (text: string) => {
      const [command, ...args] = psql
      return Number(execFileSync(command, [...args, '-XAtc', text], { encoding: 'utf8' }))
    }
    return {
      version: postgresVersion(),
      pid: server.pid,
      dataFolder,
      target: { psql, folder },
      restMs: 15_000,
      merge: async () => {
        await admin.run('VACUUM ANALYZE points; CHECKPOINT;')
        return ask("SELECT pg_total_relation_size('points') + pg_total_relation_size('series')")
      },
      countPoints: async () => ask('SELECT count(*) FROM points'),
      stop: async () => {
        admin.close()
        await server.stop('SIGINT')
      },
    }
  },
}

function insertSeries(shape: Shape, sender: number): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`
  const rows = processesOf(shape, sender).flatMap((process) =>
    process.series.map((series) => {
      const attributes = JSON.stringify(Object.fromEntries(attributesOf(process, series)))
      return `(${series.id}, ${quoted(series.name)}, ${quoted(attributes)})`
    }),
  )
  return `INSERT INTO series VALUES ${rows.join(',\n')};`
}

const seriesPerOrganisation = 16
const days = Array.from({ length: historyDays + 14 }, (_, day) => day)
const partition = (day: number): string => `points_${day}`

export const postgresqlErasure: ErasingStore = {
  name: 'PostgreSQL',
  programs: postgresPrograms,
  async open({ folder, history }): Promise<OpenErasingStore> {
    const dataFolder = join(folder, 'data')
    const { server, psql } = await startPostgres({ folder, dataFolder, settings: serverSettings })
    const connect = () => openSession(psql)
    const pathsOfPoints = () => {
      const [program, ...args] = psql
      const text = execFileSync(program, [...args, '-Atc', pathsText], { encoding: 'utf8' })
      return new Set(text.split('\n').map((path) => join(dataFolder, path)))
    }
    const [admin, reader] = [connect(), connect()]
    const senders = [connect(), connect()]
    await admin.run(dailySchemaText())
    const line = `concat(toString(series_id), ',', toString(fromUnixTimestamp64Nano(ns, 'UTC')), ',', toString(value))`
    await feed({ folder, history }, line, 'organisation', (file) =>
      admin.run(`SET timezone = 'UTC'; COPY points FROM '${file}' (FORMAT csv);`),
    )
    await admin.run('CREATE INDEX ON points (series_id, time); ANALYZE; CHECKPOINT;')
    const vacuum = (kind: string) => days.map((day) => `${kind} ${partition(day)};`).join('\n')
    const erase = (how: string, longestMs: number) => (organisation: number, mostMs: number) => {
      const limitMs = Math.min(longestMs, mostMs)
      const paths = pathsOfPoints()
      const files = filesUnder(join(dataFolder, 'base')).filter(({ path }) => paths.has(path))
      return watchErasure({ pid: server.pid, folder: dataFolder, files, limitMs }, async () => {
        await admin.run(`DELETE FROM points WHERE ${seriesOf(organisation)};\n${how}`)
      })
    }
    let sent = 0
    const late = dayStart(historyDays + 7).getTime()
    return {
      version: postgresVersion(),
      dataFolder,
      clients: {
        query: () =>
          reader.run(`SELECT date_bin('5 minutes', time, '2026-01-01'), avg(value) FROM points
            WHERE ${seriesOf(61)} AND time >= '${dayStart(historyDays - 1).toISOString()}'
              AND time < '${dayStart(historyDays).toISOString()}' GROUP BY 1 ORDER BY 1;`),
        ingest: async () => {
          const time = new Date(late + 1000 * sent++).toISOString()
          await senders[sent % senders.length]?.run(
            `INSERT INTO points SELECT 960 + i % 16, '${time}', i FROM generate_series(1, 500) i;`,
          )
        },
      },
      ways: [
        {
          name: 'DELETE, VACUUM FULL',
          erase: erase(`${vacuum('VACUUM FULL')}\nCHECKPOINT;`, Number.POSITIVE_INFINITY),
        },
        { name: 'DELETE, VACUUM', erase: erase(`${vacuum('VACUUM')}\nCHECKPOINT;`, vacuumWatchedMs) },
      ],
      stop: async () => {
        for (const session of [admin, reader, ...senders]) session.close()
        await server.stop('SIGINT')
      },
    }
  },
}

/** VACUUM keeps the files and reuses their space, so a short time is enough to see that they stay. */
const vacuumWatchedMs = 20_000

/** Automatic vacuuming is off, see the head of the file. */
const serverSettings = { max_wal_size: '8GB', autovacuum: 'off' }

function dailySchemaText(): string {
  const partitions = days.map(
    (day) => `CREATE TABLE ${partition(day)} PARTITION OF points
      FOR VALUES FROM ('${dayStart(day).toISOString()}') TO ('${dayStart(day + 1).toISOString()}');`,
  )
  return `
    CREATE TABLE points (series_id int NOT NULL, time timestamptz NOT NULL, value float8 NOT NULL) PARTITION BY RANGE (time);
    ${partitions.join('\n')}
    CREATE TABLE series (series_id int PRIMARY KEY, tenant text NOT NULL);
    INSERT INTO series SELECT i, concat('org-', i / ${seriesPerOrganisation})
      FROM generate_series(0, ${organisationCount * seriesPerOrganisation - 1}) i;`
}

/** The files of every partition and its index, below the data folder. */
const pathsText = `SELECT pg_relation_filepath(oid) FROM pg_class WHERE relname LIKE 'points\\_%' AND relkind IN ('r', 'i')`

const seriesOf = (organisation: number): string =>
  `series_id IN (SELECT series_id FROM series WHERE tenant = 'org-${organisation}')`
