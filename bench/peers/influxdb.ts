// InfluxDB 1.x on loopback for benchmarks. Nothing can ask it to compact, so a shard counts as cold after
// seconds instead of the hours it comes with, and it does nothing but what it is asked.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect200 } from '../deletion/load.ts'
import { freePort, startServer, untilReady } from './server.ts'

export const influxdProgram = '/usr/bin/influxd'

/**
 * Ready, with an empty database `points`. `cacheMaxBytes` bounds what it holds of unwritten points;
 * its default where absent.
 */
export async function startInfluxdb(
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
