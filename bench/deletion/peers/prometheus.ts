// Prometheus: its blocks are made of OpenMetrics text by promtool, a day each, as they would be after some
// days of scraping and compacting. An organisation is a label. `delete_series` only writes tombstones;
// `clean_tombstones` rewrites every block that has one. Nothing is sent while it erases: it scrapes, and
// takes no samples by HTTP.

import { execFile } from 'node:child_process'
import { appendFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { prometheusProgram, startPrometheus } from '../../peers/prometheus.ts'
import { watchErasure } from '../erasure.ts'
import { filesUnder } from '../files.ts'
import { expect200 } from '../load.ts'
import { askedMetric, dayStart, historyDays } from '../rows.ts'
import { feed, labelledMetric, type OpenPeer, type Peer } from './peer.ts'

const run = promisify(execFile)
const promtool = '/usr/bin/promtool'

export const prometheus: Peer = {
  name: 'Prometheus',
  programs: [prometheusProgram, promtool],
  async open({ folder, history }): Promise<OpenPeer> {
    const dataFolder = join(folder, 'data')
    mkdirSync(dataFolder)
    const line = `concat(${labelledMetric}, ' ', toString(value), ' ', toString(intDiv(ns, 1000000) / 1000))`
    await feed({ folder, history }, line, 'day', async (file) => {
      appendFileSync(file, '# EOF\n')
      await run(promtool, [
        ...['tsdb', 'create-blocks-from', 'openmetrics', '--quiet', '--max-block-duration=24h'],
        ...[file, dataFolder],
      ])
    })
    const { server, url } = await startPrometheus(folder, dataFolder, [
      '--storage.tsdb.retention.time=50y',
      '--storage.tsdb.max-block-duration=1d',
    ])
    return {
      version: (await run(prometheusProgram, ['--version'])).stdout.split('\n')[0] ?? '',
      dataFolder,
      clients: { ingest: null, query: () => expect200(rangeQuery(url, 61), {}) },
      ways: [
        {
          name: 'delete_series, clean_tombstones',
          erase: (organisation, limitMs) => {
            const files = filesUnder(dataFolder).filter(({ path }) => path.includes('/chunks/'))
            return watchErasure({ pid: server.pid, folder: dataFolder, files, limitMs }, async () => {
              const admin = `${url}/api/v1/admin/tsdb`
              const match = encodeURIComponent(`{tenant="org-${organisation}"}`)
              await expect200(`${admin}/delete_series?match[]=${match}`, { method: 'POST' })
              await expect200(`${admin}/clean_tombstones`, { method: 'POST' })
            })
          },
        },
      ],
      stop: () => server.stop(),
    }
  },
}

/** A day of a metric of an organisation, five minutes a point. */
export function rangeQuery(url: string, organisation: number): string {
  const query = new URLSearchParams({
    query: `avg(avg_over_time(${askedMetric.replaceAll('.', '_')}{tenant="org-${organisation}"}[5m]))`,
    start: dayStart(historyDays - 1).toISOString(),
    end: dayStart(historyDays).toISOString(),
    step: '300',
  })
  return `${url}/api/v1/query_range?${query}`
}
