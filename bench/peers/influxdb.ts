// InfluxDB 1.x on loopback. It cannot be asked to compact: a shard is compacted as a whole when nothing was
// written to it for `compact-full-write-cold-duration`, here 30 seconds instead of the default of 4 hours.
// Ingest is its line protocol; each attribute is a tag. Its index is the one on disk. Erasure is DROP SERIES,
// where an organisation is a tag and a shard a week. It writes tombstones beside its files; bytes are removed
// when a file is compacted next.

import { execFile, execFileSync } from 'node:child_process'
import { createReadStream, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { watchErasure } from '../deletion/erasure.ts'
import { filesUnder } from '../deletion/files.ts'
import { askedMetric, dayStart, historyDays } from '../deletion/rows.ts'
import { type ErasingStore, feed, freshLines, type OpenErasingStore } from './erasing-store.ts'
import { folderBytes, type IngestStore } from './ingest-store.ts'
import { expect200, freePort, startServer, untilReady } from './server.ts'

const influxdProgram = '/usr/bin/influxd'

/**
 * Resolves when it is ready, with an empty database `points`. `cacheMaxBytes` limits its memory for unwritten
 * points; its default where absent.
 */
async function startInfluxdb(
  folder: string,
  dataFolder: string,
  { cacheMaxBytes }: { cacheMaxBytes?: string } = {},
) {
  const config = join(folder, 'influxdb.conf')
  const [http, rpc] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`]
  const cache = cacheMaxBytes === undefined ? '' : `  cache-max-memory-size = "${cacheMaxBytes}"\n`
  writeFileSync(
    config,
    `reporting-disabled = true
bind-address = "${rpc}"
[meta]
  dir = "${dataFolder}/meta"
[data]
  dir = "${dataFolder}/data"
  wal-dir = "${dataFolder}/wal"
  index-version = "tsi1"
${cache}  cache-snapshot-write-cold-duration = "5s"
  compact-full-write-cold-duration = "30s"
  query-log-enabled = false
[monitor]
  store-enabled = false
[http]
  bind-address = "${http}"
  log-enabled = false
`,
  )
  const server = startServer([influxdProgram, '-config', config], { folder })
  const url = `http://${http}`
  await untilReady(() => expect200(`${url}/ping`, {}))
  await expect200(`${url}/query?q=${encodeURIComponent('CREATE DATABASE points')}`, { method: 'POST' })
  return { server, url }
}

export const influxdbIngest: IngestStore = {
  name: 'InfluxDB',
  programs: [influxdProgram],
  format: 'influx-lines',
  durability: 'synced at each request',
  async open({ folder }) {
    const dataFolder = join(folder, 'store')
    const { server, url } = await startInfluxdb(folder, dataFolder)
    return {
      version: execFileSync(influxdProgram, ['version'], { encoding: 'utf8' }).trim(),
      pid: server.pid,
      dataFolder,
      target: { url: `${url}/write?db=points&precision=ms`, headers: {} },
      restMs: 60_000,
      // It has merged by itself while it rested.
      merge: async () => folderBytes(join(dataFolder, 'data')),
      countPoints: () => countPoints(url),
      stop: () => server.stop(),
    }
  },
}

async function countPoints(url: string): Promise<number> {
  const asked = encodeURIComponent('SELECT count(value) FROM /.*/')
  const answer = await fetch(`${url}/query?db=points&q=${asked}`)
  const { results }: { results: { series: { values: [unknown, number][] }[] }[] } = JSON.parse(
    await answer.text(),
  )
  return results
    .flatMap(({ series }) => series)
    .flatMap(({ values }) => values)
    .reduce((sum, [, count]) => sum + count, 0)
}

const bodyBytes = 4 << 20

/** Longer than its snapshots and full compactions wait for quiet. */
const settleMs = 60_000

export const influxdbErasure: ErasingStore = {
  name: 'InfluxDB',
  programs: [influxdProgram],
  async open({ folder, history }): Promise<OpenErasingStore> {
    const dataFolder = join(folder, 'data')
    const { server, url } = await startInfluxdb(folder, folder, { cacheMaxBytes: '2g' })
    const query = (text: string) =>
      expect200(`${url}/query?db=points&q=${encodeURIComponent(text)}`, { method: 'POST' })
    const write = (body: NonNullable<RequestInit['body']>) =>
      expect200(`${url}/write?db=points`, { method: 'POST', body })
    const line = `concat(metric, ',tenant=', tenant, ',service=', service, ',host=', host, ',route=', route,
      ' value=', toString(value), ' ', toString(ns))`
    await feed({ folder, history }, line, 'organisation', async (file) => {
      for await (const body of wholeLines(file)) await write(body)
    })
    await sleep(settleMs)
    const from = dayStart(historyDays - 1).toISOString()
    const asked = `SELECT mean(value) FROM "${askedMetric}" WHERE tenant = 'org-61' AND time >= '${from}'
      AND time < '${dayStart(historyDays).toISOString()}' GROUP BY time(5m)`
    return {
      version: (await promisify(execFile)(influxdProgram, ['version'])).stdout.trim(),
      dataFolder,
      clients: { query: () => query(asked), ingest: () => write(freshLines(fresh)) },
      ways: [
        {
          name: 'DROP SERIES',
          erase: (organisation, limitMs) => {
            const files = filesUnder(dataFolder).filter(({ path }) => path.endsWith('.tsm'))
            return watchErasure({ pid: server.pid, folder: dataFolder, files, limitMs }, async () => {
              await query(`DROP SERIES WHERE tenant = 'org-${organisation}'`)
            })
          },
        },
      ],
      stop: () => server.stop(),
    }
  },
}

/** The file in pieces that end with a line. */
async function* wholeLines(file: string): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let rest: Uint8Array = Buffer.alloc(0)
  for await (const chunk of createReadStream(file, { highWaterMark: bodyBytes })) {
    const all = Buffer.concat([rest, chunk])
    const end = all.lastIndexOf(10) + 1
    yield new Uint8Array(all.subarray(0, end))
    rest = all.subarray(end)
  }
  if (rest.length > 0) yield new Uint8Array(rest)
}

const fresh = (i: number, ms: number): string => `fresh,tenant=org-60,host=host-${i} value=${i} ${ms}000000`
