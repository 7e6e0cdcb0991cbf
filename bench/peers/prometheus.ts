// Prometheus on loopback, with its admin interface and without scrape targets. Ingest is remote write. Points
// wait in its head, whose log and chunks are on disk, and become blocks two hours later; a snapshot writes
// the current points as blocks, which is what merged means here. Erasure is from blocks that promtool makes
// of OpenMetrics text, a day each, as they would be after some days of scraping and compacting. An
// organisation is a label. `delete_series` only writes tombstones; `clean_tombstones` rewrites every block
// that has one. Nothing is sent while it erases.

import { execFile, execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { watchErasure } from '../deletion/erasure.ts'
import { filesUnder } from '../deletion/files.ts'
import { askedMetric, dayStart, historyDays } from '../deletion/rows.ts'
import { type ErasingStore, feed, labelledMetric, type OpenErasingStore } from './erasing-store.ts'
import { folderBytes, type IngestStore } from './ingest-store.ts'
import { expect200, freePort, startServer, untilReady } from './server.ts'

const prometheusProgram = '/usr/bin/prometheus'

/** Resolves when it is ready. */
async function startPrometheus(folder: string, dataFolder: string, flags: readonly string[]) {
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

export const prometheusIngest: IngestStore = {
  name: 'Prometheus',
  programs: [prometheusProgram],
  format: 'remote-write-1',
  durability: 'in the system’s cache: its log is synced when a segment is full',
  async open({ folder }) {
    const dataFolder = join(folder, 'data')
    const { server, url } = await startPrometheus(folder, dataFolder, ['--web.enable-remote-write-receiver'])
    return {
      version: execFileSync(prometheusProgram, ['--version'], { encoding: 'utf8' }).split('\n')[0] ?? '',
      pid: server.pid,
      dataFolder,
      target: { url: `${url}/api/v1/write`, headers: {} },
      // It checks once a minute whether a block is to be written.
      restMs: 75_000,
      merge: async () => {
        await expect200(`${url}/api/v1/admin/tsdb/snapshot`, { method: 'POST' })
        return folderBytes(join(dataFolder, 'snapshots'))
      },
      countPoints: () => sumOf(url, 'prometheus_tsdb_head_samples_appended_total'),
      stop: () => server.stop(),
    }
  },
}

/** Returns the sum over all labels of one of the server's own metrics. */
export async function sumOf(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}

const run = promisify(execFile)
const promtool = '/usr/bin/promtool'

export const prometheusErasure: ErasingStore = {
  name: 'Prometheus',
  programs: [prometheusProgram, promtool],
  async open({ folder, history }): Promise<OpenErasingStore> {
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

/** Returns a day of a metric of an organisation, five minutes a point. */
export function rangeQuery(url: string, organisation: number): string {
  const query = new URLSearchParams({
    query: `avg(avg_over_time(${askedMetric.replaceAll('.', '_')}{tenant="org-${organisation}"}[5m]))`,
    start: dayStart(historyDays - 1).toISOString(),
    end: dayStart(historyDays).toISOString(),
    step: '300',
  })
  return `${url}/api/v1/query_range?${query}`
}
