// Attacks with bodies: JSON that costs more to read than to write, responses larger than their request,
// bodies that expand or never end.

import { gzipSync } from 'node:zlib'
// @ts-expect-error the library has no types
import snappy from 'snappyjs'
import { type Attack, type Attacker, madeOnce, requestHead } from '../attack.ts'
import { drip } from './without-token.ts'

const mebibyte = 1024 * 1024

/** Size of a control-plane body, within the limit of the service. */
const controlBytes = 64_000

/**
 * A name of 32 kB around thousands of repeated fields: each is a problem whose location contains the name.
 */
function explodingBody(): Buffer {
  const name = 'n'.repeat(controlBytes / 2)
  return Buffer.from(`{"${name}":{${Array(5_000).fill('"a":1').join(',')}}}`)
}

const gzipJson = { 'content-type': 'application/json', 'content-encoding': 'gzip' }

const deepBrackets = madeOnce(() => gzipSync('['.repeat(8_000_000) + ']'.repeat(8_000_000), { level: 9 }))
const manyZeros = madeOnce(() => gzipSync(`{"unknown":[${'0,'.repeat(7_000_000)}0]}`, { level: 9 }))
const gzipBombs = madeOnce(() =>
  [256 * mebibyte, 16 * mebibyte].map((size) => gzipSync(Buffer.alloc(size), { level: 6 })),
)
const snappyBomb = madeOnce(() => Buffer.from(snappy.compress(new Uint8Array(15 * mebibyte)) as Uint8Array))

/** Posts one body on `connections` connections, again and again. */
function flood(
  attacker: Attacker,
  connections: number,
  path: string,
  body: Buffer,
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  return attacker.loops(connections, () => attacker.call('POST', path, { role: 'ingest', body, headers }))
}

/** A connection that posts `written` and never the rest of the announced length. */
function unfinished(attacker: Attacker, announced: number, written: Buffer) {
  const socket = attacker.socket()
  attacker.countAnswers(socket)
  const head = requestHead('POST', '/v1/logs', {
    authorization: `Bearer ${attacker.orders.secrets.ingest}`,
    'content-type': 'application/x-protobuf',
    'content-length': announced,
  })
  socket.write(head)
  socket.write(written)
  return socket
}

export const attacksByBodies: readonly Attack[] = [
  {
    name: 'problems-unread',
    does: 'Forty connections send 64 kB that cause a 422 of 160 MB, and do not read it.',
    run: async (attacker) => {
      const body = explodingBody()
      const head = requestHead('POST', '/anomalies/detectors', {
        authorization: `Bearer ${attacker.orders.secrets.member}`,
        'content-type': 'application/json',
        'content-length': body.length,
      })
      await attacker.keepOpen(40, () => {
        const socket = attacker.socket().pause()
        socket.write(head)
        socket.write(body)
        return socket
      })
    },
  },
  {
    name: 'problems-read',
    does: 'Four connections send the same and read the whole response.',
    run: async (attacker) => {
      const body = explodingBody()
      const headers = { 'content-type': 'application/json' }
      await attacker.loops(4, () =>
        attacker.call('POST', '/anomalies/detectors', { role: 'member', body, headers }),
      )
    },
  },
  {
    name: 'deep-json-control',
    does: 'Sixteen connections send control-plane bodies of 32,000 nested brackets.',
    run: async (attacker) => {
      const depth = controlBytes / 2
      const body = Buffer.from('['.repeat(depth) + ']'.repeat(depth))
      const headers = { 'content-type': 'application/json' }
      await attacker.loops(16, () =>
        attacker.call('POST', '/anomalies/detectors', { role: 'member', body, headers }),
      )
    },
  },
  {
    name: 'deep-json-otlp',
    does: 'Four connections send 8 million nested brackets as OTLP JSON, 16 kB of gzip.',
    prepare: async () => void deepBrackets(),
    run: (attacker) => flood(attacker, 4, '/v1/logs', deepBrackets(), gzipJson),
  },
  {
    name: 'deep-json-plain',
    does: 'Four connections send objects 1.5 million deep as OTLP JSON, gzip for a control-plane body.',
    run: async (attacker) => {
      const depth = 1_500_000
      const body = gzipSync(`{"a":`.repeat(depth) + '1'.padEnd(depth + 1, '}'), { level: 9 })
      await attacker.loops(4, (loop) =>
        attacker.call('POST', loop % 2 === 0 ? '/v1/traces' : '/anomalies/detectors', {
          role: loop % 2 === 0 ? 'ingest' : 'member',
          body,
          headers: gzipJson,
        }),
      )
    },
  },
  {
    name: 'many-json-values',
    does: 'Four connections send 7 million zeros in an unknown field of OTLP JSON.',
    prepare: async () => void manyZeros(),
    run: (attacker) => flood(attacker, 4, '/v1/metrics', manyZeros(), gzipJson),
  },
  {
    name: 'gzip-bombs',
    does: 'Sixteen connections send 256 MB of zeros as 256 kB of gzip, or 16 MB, which is just allowed.',
    prepare: async () => void gzipBombs(),
    run: (attacker) => {
      const headers = { 'content-type': 'application/x-protobuf', 'content-encoding': 'gzip' }
      return attacker.loops(16, (loop) => {
        const body = gzipBombs()[loop % 2] ?? Buffer.alloc(0)
        return attacker.call('POST', '/v1/logs', { role: 'ingest', body, headers })
      })
    },
  },
  {
    name: 'snappy-bombs',
    does: 'Sixteen connections send 15 MB of zeros as Prometheus remote write in 700 kB of Snappy.',
    prepare: async () => void snappyBomb(),
    run: (attacker) => {
      const headers = { 'content-type': 'application/x-protobuf', 'content-encoding': 'snappy' }
      return flood(attacker, 16, '/api/v1/write', snappyBomb(), headers)
    },
  },
  {
    name: 'unfinished-bodies',
    does: 'Thirty-nine connections send 16 MB except the last byte, and wait.',
    run: async (attacker) => {
      const written = Buffer.alloc(16 * mebibyte - 1)
      await attacker.keepOpen(39, () => unfinished(attacker, 16 * mebibyte, written))
    },
  },
  {
    name: 'slow-bodies',
    does: 'Six hundred connections send a byte of a body a second.',
    run: (attacker) =>
      attacker.keepOpen(600, () => {
        const socket = unfinished(attacker, 1_000_000, Buffer.alloc(1000))
        drip(socket)
        return socket
      }),
  },
]
