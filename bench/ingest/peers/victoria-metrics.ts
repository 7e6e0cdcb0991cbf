// VictoriaMetrics, one node, by remote write or by its import of Prometheus' text. It has no log: what came
// in last is in memory for some seconds, and an acknowledgement does not say that it is on disk.

import { join } from 'node:path'
import { expect200 } from '../../deletion/load.ts'
import { freePort, startServer, untilReady } from '../../peers/server.ts'
import { sumOf } from './prometheus.ts'
import { folderBytes, type IngestStore } from './store.ts'

const program = '/usr/bin/victoria-metrics'

function victoriaMetrics(
  name: string,
  format: 'remote-write-1' | 'prometheus-text',
  path: string,
): IngestStore {
  return {
    name,
    programs: [program],
    format,
    durability: 'in its memory, for some seconds',
    async open({ folder }) {
      const dataFolder = join(folder, 'data')
      const address = `127.0.0.1:${await freePort()}`
      const server = startServer([program, `-storageDataPath=${dataFolder}`, `-httpListenAddr=${address}`], {
        folder,
      })
      const url = `http://${address}`
      await untilReady(() => expect200(`${url}/health`, {}))
      return {
        version: 'of Debian',
        pid: server.pid,
        dataFolder,
        door: { url: `${url}${path}`, headers: {} },
        restMs: 20_000,
        merge: async () => {
          await expect200(`${url}/internal/force_flush`, {})
          await expect200(`${url}/internal/force_merge`, {})
          return folderBytes(dataFolder)
        },
        countPoints: () => sumOf(url, 'vm_rows_added_to_storage_total'),
        stop: () => server.stop(),
      }
    },
  }
}

export const victoriaMetricsRemoteWrite = victoriaMetrics(
  'VictoriaMetrics, remote write',
  'remote-write-1',
  '/api/v1/write',
)

export const victoriaMetricsText = victoriaMetrics(
  'VictoriaMetrics, text',
  'prometheus-text',
  '/api/v1/import/prometheus',
)
