// PostgreSQL: a table of series and a table of points partitioned by day, with an index by series and time. DELETE
// only marks rows, VACUUM frees their space inside the files, and VACUUM FULL writes every partition anew, under a
// lock that keeps readers out. Automatic vacuuming is off, so that each way is measured alone; the write-ahead log,
// which keeps erased rows for a while too, is not counted.

import { execFileSync, spawn } from 'node:child_process'
import { chownSync, globSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { watchErasure } from '../erasure.ts'
import { filesUnder } from '../files.ts'
import { dayStart, historyDays, organisationCount } from '../rows.ts'
import { feed, freePort, type OpenPeer, type Peer, startServer, untilReady } from './peer.ts'

const bin = globSync('/usr/lib/postgresql/*/bin').at(-1) ?? '/usr/lib/postgresql'
const seriesPerOrganisation = 16
const days = Array.from({ length: historyDays + 14 }, (_, day) => day)
const partition = (day: number): string => `points_${day}`

export const postgresql: Peer = {
  name: 'PostgreSQL',
  programs: [`${bin}/postgres`, `${bin}/initdb`, `${bin}/psql`],
  async open({ folder, history }): Promise<OpenPeer> {
    const dataFolder = join(folder, 'data')
    const uid = serverUser()
    mkdirSync(dataFolder)
    if (uid !== undefined) chownSync(folder, uid, uid)
    if (uid !== undefined) chownSync(dataFolder, uid, uid)
    const as = uid === undefined ? {} : { uid, gid: uid }
    execFileSync(`${bin}/initdb`, ['-D', dataFolder, '-A', 'trust', '-U', 'bench'], { ...as, cwd: folder })
    const port = await freePort()
    const server = startServer([`${bin}/postgres`, '-D', dataFolder, ...serverSettings(folder, port)], {
      folder,
      ...(uid !== undefined && { uid }),
    })
    const psql = [`${bin}/psql`, '-h', folder, '-p', String(port), '-U', 'bench', 'postgres'] as const
    const connect = () => openSession(psql)
    const pathsOfPoints = () => {
      const [program, ...args] = psql
      const text = execFileSync(program, [...args, '-Atc', pathsText], { encoding: 'utf8' })
      return new Set(text.split('\n').map((path) => join(dataFolder, path)))
    }
    await untilReady(async () =>
      execFileSync(`${bin}/pg_isready`, ['-h', folder, '-p', String(port)], { stdio: 'ignore' }),
    )
    const [admin, asker] = [connect(), connect()]
    const senders = [connect(), connect()]
    await admin.run(schemaText())
    const line = `concat(toString(series_id), ',', toString(fromUnixTimestamp64Nano(ns, 'UTC')), ',', toString(value))`
    await feed({ folder, history }, line, 'organisation', (file) =>
      admin.run(`SET timezone = 'UTC'; COPY points FROM '${file}' (FORMAT csv);`),
    )
    await admin.run('CREATE INDEX ON points (series_id, time); ANALYZE; CHECKPOINT;')
    const vacuum = (kind: string) => days.map((day) => `${kind} ${partition(day)};`).join('\n')
    const erase = (how: string) => (organisation: number, limitMs: number) => {
      const held = pathsOfPoints()
      const files = filesUnder(join(dataFolder, 'base')).filter(({ path }) => held.has(path))
      return watchErasure({ pid: server.pid, folder: dataFolder, files, limitMs }, async () => {
        await admin.run(`DELETE FROM points WHERE ${seriesOf(organisation)};\n${how}`)
      })
    }
    let sent = 0
    const late = dayStart(historyDays + 7).getTime()
    return {
      version: execFileSync(`${bin}/postgres`, ['--version'], { encoding: 'utf8' }).trim(),
      dataFolder,
      clients: {
        query: () =>
          asker.run(`SELECT date_bin('5 minutes', time, '2026-01-01'), avg(value) FROM points
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
        { name: 'DELETE, VACUUM FULL', erase: erase(`${vacuum('VACUUM FULL')}\nCHECKPOINT;`) },
        { name: 'DELETE, VACUUM', erase: erase(`${vacuum('VACUUM')}\nCHECKPOINT;`) },
      ],
      stop: async () => {
        for (const session of [admin, asker, ...senders]) session.close()
        await server.stop('SIGINT')
      },
    }
  },
}

/** It refuses to run as root; Debian's package brings a user for it. */
function serverUser(): number | undefined {
  if (process.getuid?.() !== 0) return undefined
  return Number(execFileSync('id', ['-u', 'postgres'], { encoding: 'utf8' }))
}

function serverSettings(folder: string, port: number): string[] {
  const settings = {
    port,
    listen_addresses: '',
    unix_socket_directories: folder,
    shared_buffers: '1GB',
    maintenance_work_mem: '512MB',
    max_wal_size: '8GB',
    wal_level: 'minimal',
    max_wal_senders: 0,
    autovacuum: 'off',
  }
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

function schemaText(): string {
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

interface PsqlSession {
  /** Runs statements, each in a transaction of its own; rejects with what the server says. */
  readonly run: (statements: string) => Promise<void>
  readonly close: () => void
}

/** One connection that stays open, so that what its server process writes can be counted. */
function openSession([program, ...args]: readonly [string, ...string[]]): PsqlSession {
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
