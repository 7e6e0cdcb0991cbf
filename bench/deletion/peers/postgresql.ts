// PostgreSQL: a table of series and a table of points partitioned by day, with an index by series and time.
// DELETE only marks rows, VACUUM frees their space inside the files, and VACUUM FULL writes every partition
// anew, under a lock that keeps readers out. Automatic vacuuming is off, so that each way is measured alone;
// the write-ahead log, which keeps erased rows for a while too, is not counted.

import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { openSession, postgresPrograms, postgresVersion, startPostgres } from '../../peers/postgresql.ts'
import { watchErasure } from '../erasure.ts'
import { filesUnder } from '../files.ts'
import { dayStart, historyDays, organisationCount } from '../rows.ts'
import { feed, type OpenPeer, type Peer } from './peer.ts'

const seriesPerOrganisation = 16
const days = Array.from({ length: historyDays + 14 }, (_, day) => day)
const partition = (day: number): string => `points_${day}`

export const postgresql: Peer = {
  name: 'PostgreSQL',
  programs: postgresPrograms,
  async open({ folder, history }): Promise<OpenPeer> {
    const dataFolder = join(folder, 'data')
    const { server, psql } = await startPostgres({ folder, dataFolder, settings: serverSettings })
    const connect = () => openSession(psql)
    const pathsOfPoints = () => {
      const [program, ...args] = psql
      const text = execFileSync(program, [...args, '-Atc', pathsText], { encoding: 'utf8' })
      return new Set(text.split('\n').map((path) => join(dataFolder, path)))
    }
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
      version: postgresVersion(),
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

/** Automatic vacuuming is off, see above. */
const serverSettings = { max_wal_size: '8GB', autovacuum: 'off' }

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
