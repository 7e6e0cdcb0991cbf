// Attacks of a viewer: expensive queries, and responses that are not read.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Attack, type Attacker, requestHead } from '../attack.ts'
import { attackerMetric, instant, logsBody, nowMs, protobuf } from '../rows.ts'

const dayMs = 86_400_000

/**
 * A page of these has 100 MB; with twice that, the engine's memory limit for one read would allow few at
 * once.
 */
const [pageRecords, recordBytes] = [500, 200_000]

/** Sends log records with large bodies; 15 MB per HTTP body. */
async function fillLogs(attacker: Attacker, records: number, bytes: number): Promise<void> {
  const perBody = Math.max(1, Math.floor(15_000_000 / bytes))
  for (let sent = 0; sent < records; sent += perBody) {
    const lines = Array.from({ length: Math.min(perBody, records - sent) }, (_, at) => ({
      atMs: nowMs() - 60_000 + sent + at,
      body: `${sent + at} `.padEnd(bytes, 'lorem ipsum dolor sit amet '),
    }))
    const { bytes: body } = logsBody('large', lines)
    const { status } = await attacker.call('POST', '/v1/logs', { role: 'ingest', body, headers: protobuf })
    if (status === 503 || status === 429) await sleep(500)
  }
}

const fillPages = (attacker: Attacker) => fillLogs(attacker, pageRecords, recordBytes)

function pageRequest(attacker: Attacker): string {
  return requestHead('GET', `/telemetry/logs?limit=${pageRecords}`, {
    authorization: `Bearer ${attacker.orders.secrets.viewer}`,
  })
}

export function monthChart(more: string): string {
  const start = encodeURIComponent(instant(nowMs() - 30 * dayMs))
  return `/telemetry/series?metric_key=${attackerMetric}&range_start=${start}&${more}`
}

/** Requests the paths in turn on `connections` connections. */
function ask(attacker: Attacker, connections: number, paths: () => readonly string[]): Promise<void> {
  return attacker.loops(connections, (loop) => {
    const list = paths()
    return attacker.call('GET', list[loop % list.length] ?? '/', { role: 'viewer' })
  })
}

export const attacksByReads: readonly Attack[] = [
  {
    name: 'pages-unread',
    does: 'Twenty connections request a page of logs of 100 MB and read nothing.',
    prepare: fillPages,
    run: (attacker) =>
      attacker.keepOpen(20, () => {
        const socket = attacker.socket().pause()
        socket.write(pageRequest(attacker))
        return socket
      }),
  },
  {
    name: 'pages-read-slowly',
    does: 'Twenty connections read such a page at 20 kB a second.',
    prepare: fillPages,
    run: (attacker) =>
      attacker.keepOpen(20, () => {
        const socket = attacker.socket()
        socket.write(pageRequest(attacker))
        socket.on('data', () => {
          socket.pause()
          setTimeout(() => socket.resume(), 1000)
        })
        return socket
      }),
  },
  {
    name: 'pages-read',
    does: 'Four connections read such pages as fast as possible.',
    prepare: fillPages,
    run: (attacker) => ask(attacker, 4, () => [`/telemetry/logs?limit=${pageRecords}`]),
  },
  {
    name: 'large-bodies-searched',
    does: 'Eight connections search the text of 200 log records of 1 MB.',
    prepare: (attacker) => fillLogs(attacker, 200, 1_000_000),
    run: (attacker) =>
      ask(attacker, 8, () => ['/telemetry/logs?text=nowhere', '/telemetry/logs?text=amet&limit=10']),
  },
  {
    name: 'parallel-reads',
    does: 'A viewer has always 300 requests for charts of a month open.',
    run: (attacker) => ask(attacker, 300, () => [monthChart('step_seconds=3600&group_by=route')]),
  },
  {
    name: 'month-charts-many-groups',
    does: 'Sixteen connections request charts of a month in steps of minutes with many groups.',
    run: (attacker) =>
      ask(attacker, 16, () => [
        monthChart('step_seconds=240&group_by=route&group_by=zone&aggregation=p99'),
        monthChart('step_seconds=300&group_by=route&group_by=zone&group_by=service&group_by=instance'),
      ]),
  },
  {
    name: 'catalogue-and-spans',
    does: 'Thirty-two connections list metrics, services and spans of a month.',
    run: (attacker) => {
      const start = encodeURIComponent(instant(nowMs() - 30 * dayMs))
      const lists = ['metrics', 'services', 'spans', 'logs'].map(
        (list) => `/telemetry/${list}?limit=500&range_start=${start}`,
      )
      return ask(attacker, 32, () => lists)
    },
  },
]
