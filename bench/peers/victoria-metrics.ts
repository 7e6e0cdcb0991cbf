// VictoriaMetrics on loopback, one node. Ingest is remote write or its import of Prometheus text. It has no
// log: new points are in memory for some seconds, and an acknowledgement does not mean that they are on disk.
// Erasure is from points imported as Prometheus text, where a month is a partition. `delete_series` only
// marks series; their bytes are removed when the parts are merged, which `force_merge` requests. Names and
// labels of deleted series stay in its index, which is not counted here.

import { execFile } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { watchErasure } from '../deletion/erasure.ts'
import { filesUnder } from '../deletion/files.ts'
import {
  type ErasingStore,
  feed,
  freshLines,
  labelledMetric,
  type OpenErasingStore,
} from './erasing-store.ts'
import { folderBytes, type IngestStore } from './ingest-store.ts'
import { rangeQuery, sumOf } from './prometheus.ts'
import { expect200, freePort, startServer, untilReady } from './server.ts'

const program = '/usr/bin/victoria-metrics'

/** Resolves when it is ready. */
async function startVictoriaMetrics(folder: string, dataFolder: string, flags: readonly string[] = []) {
  const address = `127.0.0.1:${await freePort()}`
  const server = startServer(
    [program, `-storageDataPath=${dataFolder}`, `-httpListenAddr=${address}`, ...flags],
    { folder },
  )
  const url = `http://${address}`
  await untilReady(() => expect200(`${url}/health`, {}))
  return { server, url }
}

function ingestOver(name: string, format: 'remote-write-1' | 'prometheus-text', path: string): IngestStore {
  return {
    name,
    programs: [program],
    format,
    durability: 'in its memory, for some seconds',
    async open({ folder }) {
      const dataFolder = join(folder, 'data')
      const { server, url } = await startVictoriaMetrics(folder, dataFolder)
      return {
        version: 'of Debian',
        pid: server.pid,
        dataFolder,
        target: { url: `${url}${path}`, headers: {} },
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

export const victoriaMetricsRemoteWrite = ingestOver(
  'VictoriaMetrics, remote write',
  'remote-write-1',
  '/api/v1/write',
)

export const victoriaMetricsText = ingestOver(
  'VictoriaMetrics, text',
  'prometheus-text',
  '/api/v1/import/prometheus',
)

/** Until the last imported points have left memory and small merges have ended. */
const settleMs = 15_000

export const victoriaMetricsErasure: ErasingStore = {
  name: 'VictoriaMetrics',
  programs: [program],
  async open({ folder, history }): Promise<OpenErasingStore> {
    const dataFolder = join(folder, 'data')
    const { server, url } = await startVictoriaMetrics(folder, dataFolder, ['-retentionPeriod=50y'])
    const line = `concat(${labelledMetric}, ' ', toString(value), ' ', toString(intDiv(ns, 1000000)))`
    await feed({ folder, history }, line, 'organisation', (file) =>
      expect200(`${url}/api/v1/import/prometheus`, {
        method: 'POST',
        body: Readable.toWeb(createReadStream(file, { highWaterMark: 1 << 20 })) as NonNullable<
          RequestInit['body']
        >,
        duplex: 'half',
      } as RequestInit),
    )
    await expect200(`${url}/internal/force_flush`, {})
    await sleep(settleMs)
    return {
      version: (await promisify(execFile)(program, ['-version'])).stdout.trim() || 'of Debian',
      dataFolder,
      clients: {
        query: () => expect200(rangeQuery(url, 61), {}),
        ingest: () =>
          expect200(`${url}/api/v1/import/prometheus`, { method: 'POST', body: freshLines(fresh) }),
      },
      ways: [
        {
          name: 'delete_series, force_merge',
          erase: (organisation, limitMs) => {
            const files = filesUnder(join(dataFolder, 'data')).filter(({ path }) =>
              path.endsWith('values.bin'),
            )
            return watchErasure({ pid: server.pid, folder: dataFolder, files, limitMs }, async () => {
              const match = encodeURIComponent(`{tenant="org-${organisation}"}`)
              await expect200(`${url}/api/v1/admin/tsdb/delete_series?match[]=${match}`, { method: 'POST' })
              await expect200(`${url}/internal/force_merge`, {})
            })
          },
        },
      ],
      stop: () => server.stop(),
    }
  },
}

const fresh = (i: number, ms: number): string => `fresh_metric{tenant="org-60",host="host-${i}"} ${i} ${ms}`
