// PostgreSQL by COPY BINARY, a transaction for each body, into points with an index by series and time.
// The attributes of a series are in a table of their own, filled before anything is timed: its clients
// know the number of a series, which the clients of no other store have to. Its log is not among the
// bytes of what is merged.

import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { openSession, postgresPrograms, postgresVersion, startPostgres } from '../../peers/postgresql.ts'
import { attributesOf } from './bodies.ts'
import { processesOf, type Shape } from './points.ts'
import type { IngestStore } from './store.ts'

const schemaText = `
  CREATE TABLE series (series_id int PRIMARY KEY, name text NOT NULL, attributes jsonb NOT NULL);
  CREATE TABLE points (series_id int NOT NULL, time timestamptz NOT NULL, value float8 NOT NULL);
  CREATE INDEX ON points (series_id, time);`

export const postgresql: IngestStore = {
  name: 'PostgreSQL',
  programs: postgresPrograms,
  format: 'postgres-copy',
  durability: 'synced at each commit',
  async open({ folder, shape }) {
    const dataFolder = join(folder, 'data')
    const { server, psql } = await startPostgres({ folder, dataFolder, settings: {} })
    const admin = openSession(psql)
    await admin.run(schemaText)
    for (let sender = 0; sender < shape.senders; sender++) await admin.run(insertSeries(shape, sender))
    const ask = (text: string) => {
      const [command, ...args] = psql
      return Number(execFileSync(command, [...args, '-XAtc', text], { encoding: 'utf8' }))
    }
    return {
      version: postgresVersion(),
      pid: server.pid,
      dataFolder,
      door: { psql, folder },
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
