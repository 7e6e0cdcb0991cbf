// Prometheus on loopback for benchmarks, with its door for operators and nothing to scrape.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect200 } from '../deletion/load.ts'
import { freePort, startServer, untilReady } from './server.ts'

export const prometheusProgram = '/usr/bin/prometheus'

/** Ready. */
export async function startPrometheus(folder: string, dataFolder: string, flags: readonly string[]) {
  const config = join(folder, 'prometheus.yml')
  writeFileSync(config, 'global: {}\n')
  const address = `127.0.0.1:${await freePort()}`
  const server = startServer(
    [
      prometheusProgram,
      `--config.file=${config}`,
      `--storage.tsdb.path=${dataFolder}`,
      '--web.enable-admin-api',
      `--web.listen-address=${address}`,
      ...flags,
    ],
    { folder },
  )
  const url = `http://${address}`
  await untilReady(() => expect200(`${url}/-/ready`, {}))
  return { server, url }
}
