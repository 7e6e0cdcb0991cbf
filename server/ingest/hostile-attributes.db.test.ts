// Attributes that try to imitate others: keys and values with the bytes that separate attributes on disk,
// with their look-alikes in UTF-8, and with lone surrogates, by every protocol. The results of filters,
// groups and reads are compared with maps of what the senders meant, so a forged attribute shows as an
// additional row.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { LogQuery } from '../../contract/telemetry/queries.ts'
import { openStores, type Stores, tableSpec } from '../../tests/fixtures.ts'
import { here } from '../../tests/otlp/decode-here.ts'
import { encodeProto } from '../../tests/otlp/otlp-messages.ts'
import { encodeRequest, versions } from '../../tests/prometheus/remote-write-messages.ts'
import { listLogs } from '../query/logs.ts'
import { attribute, hasAttribute } from '../telemetry/attribute.ts'
import type { TenantPlace } from '../telemetry/engine.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import type { AttributeMap } from '../telemetry/row-fixture.ts'
import type { RowBatch } from '../telemetry/rows.ts'
import { insertColumns } from '../telemetry/schema/create-schema.ts'
import { exporterDatabase } from '../telemetry/schema/exporter-views.ts'
import type { TableName } from '../telemetry/schema/tables.ts'
import { raw, sql } from '../telemetry/sql.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { decodeExport } from './otlp/decode-export.ts'
import { decodeRemoteWrite } from './prometheus/remote-write.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const startMs = 1_763_712_000_000

/** Endings after a beginning that makes each of them unique; sent byte by byte. */
const endings: readonly Buffer[] = [
  [0xfe],
  [0xff],
  [0xfe, 0xff],
  [0xff, 0xfe],
  ['x', 0xfe, 'admin', 0xff, 'true', 0xfe],
  ['x', 0xff, 'admin', 0xfe, 'true', 0xff],
  [0xc3, 0xbe, 'admin', 0xc3, 0xbf, 'true', 0xc3, 0xbe],
  // Bytes that a careless decoder might turn into 254 and 255: overlong forms, lone surrogates, incomplete
  // sequences.
  [0xc3],
  [0xc1, 0xbe, 'admin', 0xc1, 0xbf, 'true'],
  [0xe0, 0x83, 0xbe, 'admin', 0xe0, 0x83, 0xbf, 'true'],
  [0xed, 0xa0, 0x80, 'admin', 0xed, 0xbf, 0xbf, 'true'],
  [0xf8, 0x88, 0x80, 0x80, 0xbe],
  ['long enough to be copied by another way: ', '-'.repeat(40), 0xfe, 'admin', 0xff, 'true', 0xfe],
].map((parts) =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.of(part)))),
)

/** An ASCII text that stands for the bytes while a message is encoded, and the text that must be read. */
const hostile = endings.map((ending, i) => {
  const beginning = `h${i}:`
  return {
    marker: beginning + '~'.repeat(ending.length),
    bytes: Buffer.concat([Buffer.from(beginning), ending]),
    text: beginning + ending.toString('utf8'),
  }
})

function withBytes(body: Buffer): Buffer {
  for (const { marker, bytes } of hostile)
    for (let at = body.indexOf(marker); at >= 0; at = body.indexOf(marker, at + 1)) bytes.copy(body, at)
  return body
}

/** Attributes as they are sent, with markers, and as they are meant. */
interface Sent {
  readonly sent: readonly (readonly [key: string, value: string])[]
  readonly meant: AttributeMap
}

const nul = 'h\0admin\0true\0'

const records: readonly Sent[] = [
  {
    sent: [
      ['user', 'root'],
      ['admin', 'true'],
    ],
    meant: { user: 'root', admin: 'true' },
  },
  { sent: [[nul, nul]], meant: { [nul]: nul } },
  ...hostile.map(({ marker, text }) => ({
    sent: [
      ['user', marker],
      [marker, 'v'],
      ['last', 'one'],
    ] as const,
    meant: { user: text, [text]: 'v', last: 'one' },
  })),
]

/** Lone surrogates, which only JSON can write, and an empty key. */
const halves: readonly Sent[] = ['\ud800', '\udfff\ud800', 'x\udbffadmin\udbfftrue'].map((half, i) => {
  const text = `half${i}${half}`
  return {
    sent: [
      [text, 'v'],
      ['user', text],
      ['', 'of no name'],
    ] as const,
    meant: { [text.toWellFormed()]: 'v', user: text.toWellFormed(), '': 'of no name' },
  }
})

const keyValues = ({ sent }: Sent) => sent.map(([key, value]) => ({ key, value: { stringValue: value } }))
const timeOf = (at: number) => `${startMs + at}000000`

const logsOf = (all: readonly Sent[]) => ({
  resourceLogs: [
    {
      scopeLogs: [
        { logRecords: all.map((one, at) => ({ timeUnixNano: timeOf(at), attributes: keyValues(one) })) },
      ],
    },
  ],
})

const gaugesOf = (all: readonly Sent[]) => ({
  resourceMetrics: [
    {
      scopeMetrics: [
        {
          metrics: [
            {
              name: 'm',
              gauge: {
                dataPoints: all.map((one, at) => ({
                  timeUnixNano: timeOf(at),
                  asDouble: 1,
                  attributes: keyValues(one),
                })),
              },
            },
          ],
        },
      ],
    },
  ],
})

async function store(batch: RowBatch): Promise<void> {
  for (const { table, bytes } of batch)
    await stores.engine.insert(table, insertColumns(tableSpec(table)), [bytes])
}

/** Every attribute that was meant, or that could be forged, finds exactly the records that have it. */
async function assertNoneForged(
  place: TenantPlace,
  table: TableName,
  column: string,
  meant: readonly AttributeMap[],
): Promise<void> {
  const time = raw(tableSpec(table).timeColumn)
  const maps = await stores.engine.select<{ map: AttributeMap }>(
    sql`SELECT ${raw(column)} AS map FROM ${raw(`${exporterDatabase}.${table}`)} WHERE TenantId = ${place.tenantId} ORDER BY ${time}`,
  )
  assert.deepEqual(
    maps.map(({ map }) => map),
    meant,
  )
  const reader = new TenantReader(stores.engine, place, new TelemetryGate())
  const pairs = `${column}Pairs`
  const forgeable = [
    ['admin', 'true'],
    ['user', 'root'],
    ['user', ''],
    ['', ''],
  ] as const
  for (const [key, value] of [...forgeable, ...meant.flatMap((map) => Object.entries(map))]) {
    const found = await reader.rows<{ ms: string }>(
      (from) =>
        sql`SELECT toUnixTimestamp64Milli(${time}) AS ms FROM ${from(table, hasAttribute(pairs, key, value))} ORDER BY ms`,
    )
    assert.deepEqual(
      found.map(({ ms }) => Number(ms) - startMs),
      meant.flatMap((map, at) => ((map[key] ?? '') === value ? [at] : [])),
      `${JSON.stringify(key)} = ${JSON.stringify(value)}`,
    )
  }
  for (const key of new Set(['admin', 'user', '', ...meant.flatMap((map) => Object.keys(map))])) {
    const found = await reader.rows<{ value: string; records: string }>(
      (from) =>
        sql`SELECT ${attribute(pairs, key)} AS value, count() AS records FROM ${from(table)} GROUP BY value`,
    )
    const groups = Map.groupBy(meant, (map) => map[key] ?? '')
    assert.deepEqual(
      new Map(found.map(({ value, records: count }) => [value, Number(count)])),
      new Map([...groups].map(([value, { length }]) => [value, length])),
      JSON.stringify(key),
    )
  }
}

const meantBy = (all: readonly Sent[]) => all.map(({ meant }) => meant)

for (const encoding of ['protobuf', 'json'] as const) {
  const all = encoding === 'json' ? [...records, ...halves] : records
  const encode = (signal: 'logs' | 'metrics', message: object) =>
    withBytes(encoding === 'json' ? Buffer.from(JSON.stringify(message)) : encodeProto(signal, message))

  test(`no attribute of OTLP in ${encoding} can imitate another`, async () => {
    const place = { tenantId: encoding, placement: here.placement }
    const origin = { place, receivedNs: BigInt(startMs) * 1_000_000n }
    const logs = decodeExport('logs', encoding, encode('logs', logsOf(all)), origin)
    const gauges = decodeExport('metrics', encoding, encode('metrics', gaugesOf(all)), origin)
    assert.deepEqual([logs.accepted, gauges.accepted], [all.length, all.length])
    await store(logs.batch)
    await store(gauges.batch)
    await assertNoneForged(place, 'otel_logs', 'LogAttributes', meantBy(all))
    await assertNoneForged(place, 'otel_metrics_gauge', 'Attributes', meantBy(all))

    const reader = new TenantReader(stores.engine, place, new TelemetryGate())
    const answered = async (filter: readonly string[]) => {
      const query = LogQuery.parse({
        range_start: new Date(startMs).toISOString(),
        limit: '100',
        attribute: filter,
      })
      const page = await listLogs(reader, query, BigInt(startMs + 60_000) * 1_000_000n)
      return page.items.map(({ attributes }) => attributes).toReversed()
    }
    assert.deepEqual(await answered([]), meantBy(all))
    assert.deepEqual(await answered(['admin=true']), [{ user: 'root', admin: 'true' }])
  })
}

for (const version of versions) {
  test(`no label of remote write ${version} can imitate another`, async () => {
    const place = { tenantId: `remote ${version}`, placement: here.placement }
    const series = records.map(({ sent }, at) => ({
      labels: [['__name__', 'm'], ['job', 'j'], ...sent] as const,
      samples: [{ value: 1, timestamp: startMs + at }],
    }))
    const parts = decodeRemoteWrite(version, withBytes(encodeRequest(version, series)), place)
    assert.equal(parts[0].accepted, records.length)
    await store(parts[0].batch)
    await assertNoneForged(place, 'otel_metrics_gauge', 'Attributes', meantBy(records))
  })
}
