// Attacks with an ingest token: more telemetry, and telemetry that costs more to store than to send.

import { encodeProto, logsOfLongResource } from '../../../tests/otlp/otlp-messages.ts'
import { ingestBodies } from '../../ingest/payloads.ts'
import { type Attack, type Attacker, madeOnce, requestHead } from '../attack.ts'
import { gaugeBody, logsBody, nowMs, protobuf } from '../rows.ts'

const weekMs = 7 * 86_400_000

/** Posts the bodies in turn on `connections` connections. */
async function post(
  attacker: Attacker,
  connections: number,
  path: string,
  bodies: readonly Buffer[],
): Promise<void> {
  let next = 0
  await attacker.loops(connections, () => {
    const body = bodies[next++ % bodies.length] ?? Buffer.alloc(0)
    return attacker.call('POST', path, { role: 'ingest', body, headers: protobuf })
  })
}

/** A length-delimited field of protobuf, number below 16. */
function field(number: number, content: Buffer): Buffer {
  const length: number[] = []
  let rest = content.length
  for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) + 128)
  return Buffer.concat([Buffer.from([number * 8 + 2, ...length, rest]), content])
}

/** Log records with an attribute of nested maps. */
function deepAttribute(depth: number): Buffer {
  // AnyValue{string_value}, then `depth` times AnyValue{kvlist_value{values{key, value}}}.
  let value = field(1, Buffer.from('end'))
  for (let level = 0; level < depth; level++)
    value = field(6, field(1, Buffer.concat([field(1, Buffer.from('k')), field(2, value)])))
  const attribute = Buffer.concat([field(1, Buffer.from('deep')), field(2, value)])
  const record = field(6, attribute)
  return field(1, field(2, field(2, record)))
}

const startNs = (): bigint => BigInt(nowMs()) * 1_000_000n
const repeatedResource = (records: number, attributeBytes: number): Buffer =>
  encodeProto('logs', logsOfLongResource(records, attributeBytes, String(startNs())))
export const floodOfMetrics = madeOnce(() => ingestBodies('metrics', 8, 7, startNs()))
const floodOfLogs = madeOnce(() => ingestBodies('logs', 8, 7, startNs()))

const uniquePoints = madeOnce(() =>
  Array.from({ length: 24 }, (_, body) => {
    const points = Array.from({ length: 2000 }, (__, at) => ({
      atMs: nowMs() - at,
      value: at,
      attributes: {
        user: `u-${body}-${at}`,
        session: `s-${at}-${body}`,
        route: `/users/${body * 2000 + at}`,
      },
    }))
    return gaugeBody('cardinal', 'attacker.unique', points).bytes
  }),
)

const wideRecord = madeOnce(() => {
  const attributes = Object.fromEntries(Array.from({ length: 60_000 }, (_, at) => [`key-${at}`, 'v']))
  return logsBody('wide', [{ atMs: nowMs(), body: 'x', attributes }]).bytes
})

export const attacksByIngest: readonly Attack[] = [
  {
    name: 'ingest-flood',
    does: 'Sixty-four connections send metrics as fast as they are accepted.',
    prepare: async () => void floodOfMetrics(),
    run: (attacker) => post(attacker, 64, '/v1/metrics', floodOfMetrics()),
  },
  {
    name: 'ingest-flood-of-logs',
    does: 'Sixty-four connections send logs as fast as they are accepted.',
    prepare: async () => void floodOfLogs(),
    run: (attacker) => post(attacker, 64, '/v1/logs', floodOfLogs()),
  },
  {
    name: 'tiny-bodies',
    does: 'Sixty-four connections pipeline bodies of one log record.',
    run: (attacker) => {
      const { bytes } = logsBody('tiny', [{ atMs: nowMs(), body: 'x' }])
      const head = requestHead('POST', '/v1/logs', {
        authorization: `Bearer ${attacker.orders.secrets.ingest}`,
        ...protobuf,
        'content-length': bytes.length,
      })
      const pipeline = Buffer.concat(Array.from({ length: 50 }, () => [Buffer.from(head), bytes]).flat())
      return attacker.keepOpen(64, () => {
        const socket = attacker.socket()
        attacker.countAnswers(socket)
        const write = () => {
          while (!socket.destroyed && socket.write(pipeline)) if (socket.writableLength > 1_000_000) break
        }
        socket.on('drain', write)
        socket.once('connect', write)
        return socket
      })
    },
  },
  {
    name: 'high-cardinality',
    does: 'Eight connections send points with always new attributes.',
    prepare: async () => void uniquePoints(),
    run: (attacker) => post(attacker, 8, '/v1/metrics', uniquePoints()),
  },
  {
    name: 'many-weeks',
    does: 'Eight connections send bodies with rows of 120 weeks.',
    run: (attacker) => {
      const bodies = Array.from({ length: 16 }, (_, body) => {
        const lines = Array.from({ length: 120 }, (__, week) => ({
          atMs: nowMs() - (week + body * 60) * weekMs - body,
          body: `week ${week}`,
        }))
        return logsBody('weeks', lines).bytes
      })
      return post(attacker, 8, '/v1/logs', bodies)
    },
  },
  {
    name: 'deep-attributes',
    does: 'Eight connections send log records with 6,000 nested maps.',
    run: (attacker) => post(attacker, 8, '/v1/logs', [deepAttribute(6000)]),
  },
  {
    name: 'many-attributes',
    does: 'Eight connections send log records with 60,000 attributes each.',
    prepare: async () => void wideRecord(),
    run: (attacker) => post(attacker, 8, '/v1/logs', [wideRecord()]),
  },
  {
    name: 'repeated-resource',
    does: 'Eight connections send bodies of 70 kB, whose rows take 60 MB because they repeat a resource.',
    run: (attacker) => post(attacker, 8, '/v1/logs', [repeatedResource(3_000, 20_000)]),
  },
  {
    name: 'repeated-resource-refused',
    does: 'Eight connections send such bodies, whose rows would take more than is accepted.',
    run: (attacker) => post(attacker, 8, '/v1/logs', [repeatedResource(6_000, 30_000)]),
  },
]
