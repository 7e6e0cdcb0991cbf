// VictoriaMetrics, one node: points are imported as Prometheus text, a month is a partition. `delete_series`
// only marks series; their bytes go when the parts are merged, which `force_merge` asks for. Names and labels
// of what was deleted stay in its index, which is not counted here.

import { execFile } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { freePort, startServer, untilReady } from '../../peers/server.ts'
import { watchErasure } from '../erasure.ts'
import { filesUnder } from '../files.ts'
import { expect200 } from '../load.ts'
import { dayStart, historyDays } from '../rows.ts'
import { feed, labelledMetric, type OpenPeer, type Peer } from './peer.ts'
import { rangeQuery } from './prometheus.ts'

const program = '/usr/bin/victoria-metrics'

/** For what was imported last to leave memory and small merges to end. */
const settleMs = 15_000

export const victoriaMetrics: Peer = {
  name: 'VictoriaMetrics',
  programs: [program],
  async open({ folder, history }): Promise<OpenPeer> {
    const dataFolder = join(folder, 'data')
    const address = `127.0.0.1:${await freePort()}`
    const server = startServer(
      [program, `-storageDataPath=${dataFolder}`, `-httpListenAddr=${address}`, '-retentionPeriod=50y'],
      { folder },
    )
    const url = `http://${address}`
    await untilReady(() => expect200(`${url}/health`, {}))
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
        ingest: () => expect200(`${url}/api/v1/import/prometheus`, { method: 'POST', body: freshLines() }),
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

let sent = 0

/** 500 points of a neighbour, later than the history. */
function freshLines(): string {
  const fromMs = dayStart(historyDays + 7).getTime() + 1000 * sent++
  return Array.from(
    { length: 500 },
    (_, i) => `fresh_metric{tenant="org-60",host="host-${i}"} ${i} ${fromMs}`,
  ).join('\n')
}
