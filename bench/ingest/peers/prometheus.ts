// Prometheus as a receiver of remote write. Points wait in its head, whose log and chunks are on
// disk, and become blocks of two hours later; a snapshot writes what is there as blocks now, which
// is what merged means here.

import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect200 } from '../../deletion/load.ts'
import { prometheusProgram, startPrometheus } from '../../peers/prometheus.ts'
import { folderBytes, type IngestStore } from './store.ts'

export const prometheus: IngestStore = {
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
      door: { url: `${url}/api/v1/write`, headers: {} },
      // It looks once a minute whether there is a block to write.
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

/** What a server says of itself under a name, over all labels. */
export async function sumOf(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}
