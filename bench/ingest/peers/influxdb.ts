// InfluxDB 1.x by its line protocol; each attribute is a tag. Its index is the one on disk. Nothing can ask it to
// compact, so a shard counts as cold after seconds instead of hours: that begins only when nobody writes any more.

import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect200 } from '../../deletion/load.ts'
import { freePort, startServer, untilReady } from '../../peers/server.ts'
import { folderBytes, type IngestStore } from './store.ts'

const program = '/usr/bin/influxd'

export const influxdb: IngestStore = {
  name: 'InfluxDB',
  programs: [program],
  format: 'influx-lines',
  durability: 'synced at each request',
  async open({ folder }) {
    const address = `127.0.0.1:${await freePort()}`
    const config = join(folder, 'influxdb.conf')
    const dataFolder = join(folder, 'store')
    writeFileSync(config, configText(dataFolder, address, `127.0.0.1:${await freePort()}`))
    const server = startServer([program, '-config', config], { folder })
    const url = `http://${address}`
    await untilReady(() => expect200(`${url}/ping`, {}))
    await expect200(`${url}/query?q=${encodeURIComponent('CREATE DATABASE points')}`, { method: 'POST' })
    return {
      version: execFileSync(program, ['version'], { encoding: 'utf8' }).trim(),
      pid: server.pid,
      dataFolder,
      door: { url: `${url}/write?db=points&precision=ms`, headers: {} },
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

function configText(folder: string, http: string, rpc: string): string {
  return `reporting-disabled = true
bind-address = "${rpc}"
[meta]
  dir = "${folder}/meta"
[data]
  dir = "${folder}/data"
  wal-dir = "${folder}/wal"
  index-version = "tsi1"
  cache-snapshot-write-cold-duration = "5s"
  compact-full-write-cold-duration = "30s"
  query-log-enabled = false
[monitor]
  store-enabled = false
[http]
  bind-address = "${http}"
  log-enabled = false
`
}
