// InfluxDB 1.x: an organisation is a tag, a shard is a week. DROP SERIES writes tombstones beside its
// files; bytes go when a file is compacted next, and nothing can ask for that: a shard is compacted as a
// whole when nobody has written to it for `compact-full-write-cold-duration`, here 30 seconds instead of
// the 4 hours it comes with.

import { execFile } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { influxdProgram, startInfluxdb } from '../../peers/influxdb.ts'
import { watchErasure } from '../erasure.ts'
import { filesUnder } from '../files.ts'
import { expect200 } from '../load.ts'
import { askedMetric, dayStart, historyDays } from '../rows.ts'
import { feed, type OpenPeer, type Peer } from './peer.ts'

const bodyBytes = 4 << 20

/** Longer than its snapshots and full compactions wait for quiet. */
const settleMs = 60_000

export const influxdb: Peer = {
  name: 'InfluxDB',
  programs: [influxdProgram],
  async open({ folder, history }): Promise<OpenPeer> {
    const dataFolder = join(folder, 'data')
    const { server, url } = await startInfluxdb(folder, folder, { cacheMaxBytes: '2g' })
    const query = (text: string) =>
      expect200(`${url}/query?db=points&q=${encodeURIComponent(text)}`, { method: 'POST' })
    const write = (body: NonNullable<RequestInit['body']>) =>
      expect200(`${url}/write?db=points`, { method: 'POST', body })
    const line = `concat(metric, ',tenant=', tenant, ',service=', service, ',host=', host, ',route=', route,
      ' value=', toString(value), ' ', toString(ns))`
    await feed({ folder, history }, line, 'organisation', async (file) => {
      for await (const body of wholeLines(file)) await write(body)
    })
    await sleep(settleMs)
    const from = dayStart(historyDays - 1).toISOString()
    const asked = `SELECT mean(value) FROM "${askedMetric}" WHERE tenant = 'org-61' AND time >= '${from}'
      AND time < '${dayStart(historyDays).toISOString()}' GROUP BY time(5m)`
    return {
      version: (await promisify(execFile)(influxdProgram, ['version'])).stdout.trim(),
      dataFolder,
      clients: { query: () => query(asked), ingest: () => write(freshLines()) },
      ways: [
        {
          name: 'DROP SERIES',
          erase: (organisation, limitMs) => {
            const files = filesUnder(dataFolder).filter(({ path }) => path.endsWith('.tsm'))
            return watchErasure({ pid: server.pid, folder: dataFolder, files, limitMs }, async () => {
              await query(`DROP SERIES WHERE tenant = 'org-${organisation}'`)
            })
          },
        },
      ],
      stop: () => server.stop(),
    }
  },
}

/** The file in pieces that end with a line. */
async function* wholeLines(file: string): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let rest: Uint8Array = Buffer.alloc(0)
  for await (const chunk of createReadStream(file, { highWaterMark: bodyBytes })) {
    const all = Buffer.concat([rest, chunk])
    const end = all.lastIndexOf(10) + 1
    yield new Uint8Array(all.subarray(0, end))
    rest = all.subarray(end)
  }
  if (rest.length > 0) yield new Uint8Array(rest)
}

let sent = 0

/** 500 points of a neighbour, later than the history. */
function freshLines(): string {
  const fromNs = BigInt(dayStart(historyDays + 7).getTime() + 1000 * sent++) * 1_000_000n
  return Array.from(
    { length: 500 },
    (_, i) => `fresh,tenant=org-60,host=host-${i} value=${i} ${fromNs}`,
  ).join('\n')
}
