// InfluxDB 1.x by its line protocol; each attribute is a tag. Its index is the one on disk. A shard counts as
// cold, and is compacted, only when nobody writes any more.

import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { influxdProgram, startInfluxdb } from '../../peers/influxdb.ts'
import { folderBytes, type IngestStore } from './store.ts'

export const influxdb: IngestStore = {
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
