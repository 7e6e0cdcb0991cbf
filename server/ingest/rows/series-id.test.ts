// What distinguishes one series from another when its points are written: only metric, service, resource,
// scope and attributes, for any protocol and order. Every test that reads rows of a decoder checks the number
// itself (tests/otlp/named-cells.ts).

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { decodeHere, here } from '../../../tests/otlp/decode-here.ts'
import { placedRows } from '../../../tests/otlp/named-cells.ts'
import { encodeProto } from '../../../tests/otlp/otlp-messages.ts'
import { encodeRequest, versions } from '../../../tests/prometheus/remote-write-messages.ts'
import { RowBinary } from '../../telemetry/row-binary.ts'
import type { RowBatch } from '../../telemetry/rows.ts'
import { pairMiddle } from '../../telemetry/schema/attribute-pairs.ts'
import { SeriesId, seriesParts } from '../../telemetry/schema/series-id.ts'
import { decodeRemoteWrite } from '../prometheus/remote-write.ts'

type Attributes = readonly (readonly [key: string, value: string])[]

interface Series {
  readonly metric: string
  readonly resource: Attributes
  readonly scope: string
  readonly attributes: Attributes
}

const series: Series = {
  metric: 'jobs_done_total',
  resource: [
    ['service.name', 'shop'],
    ['service.instance.id', 'a:9090'],
  ],
  scope: 'meter',
  attributes: [
    ['room', 'cold'],
    ['naïve', 'ключ'],
    ['long', 'x'.repeat(300)],
    ['k'.repeat(200), ''],
  ],
}

/** Everything else of a point, which does not belong to its series. */
interface Circumstance {
  readonly kind: 'gauge' | 'sum'
  readonly timeUnixNano: string
  readonly version: string
  readonly unit: string
}

const now: Circumstance = { kind: 'sum', timeUnixNano: '1767571200123000000', version: '1', unit: 's' }

function exportOf({ metric, resource, scope, attributes }: Series, circumstance: Circumstance): object {
  const pairs = (list: Attributes) => list.map(([key, stringValue]) => ({ key, value: { stringValue } }))
  const { kind, timeUnixNano, unit, version } = circumstance
  const dataPoints = [{ attributes: pairs(attributes), timeUnixNano, asDouble: 1 }]
  const data =
    kind === 'sum'
      ? { sum: { aggregationTemporality: 2, isMonotonic: true, dataPoints } }
      : { gauge: { dataPoints } }
  return {
    resourceMetrics: [
      {
        resource: { attributes: pairs(resource) },
        scopeMetrics: [{ scope: { name: scope, version }, metrics: [{ name: metric, unit, ...data }] }],
      },
    ],
  }
}

function idsOf(batch: RowBatch): unknown[] {
  return batch.flatMap(({ table, bytes }) => placedRows(table, bytes).map((row) => row.SeriesId))
}

/** By protobuf and by JSON. */
function idsBySdk(own: Series, circumstance: Circumstance): unknown[] {
  const message = exportOf(own, circumstance)
  const bodies = {
    protobuf: encodeProto('metrics', message),
    json: Buffer.from(JSON.stringify(message)),
  }
  return Object.entries(bodies).flatMap(([encoding, body]) =>
    idsOf(decodeHere('metrics', encoding as keyof typeof bodies, body, 0n).batch),
  )
}

/** By both versions of remote write, whose labels name service, instance and scope. */
function idsByPrometheus({ metric, resource, scope, attributes }: Series): unknown[] {
  const own = Object.fromEntries(resource)
  const source = {
    job: own['service.name'] ?? '',
    instance: own['service.instance.id'] ?? '',
    otel_scope_name: scope,
  }
  const labels = [...Object.entries({ __name__: metric, ...source }), ...attributes]
  const samples = [1, 2].map((value) => ({ value, timestamp: 1_767_571_200_000 + value }))
  return versions.flatMap((version) =>
    decodeRemoteWrite(version, encodeRequest(version, [{ labels, samples, type: 1 }]), here).flatMap(
      ({ batch }) => idsOf(batch),
    ),
  )
}

const turned = ({ resource, attributes, ...own }: Series): Series => ({
  ...own,
  resource: resource.toReversed(),
  attributes: attributes.toReversed(),
})

describe('the identity of a series', () => {
  test('is the same by every protocol, in any order and whatever else the point has', () => {
    const withValues = { ...series, attributes: series.attributes.filter(([, value]) => value !== '') }
    const ids = [withValues, turned(withValues)].flatMap((own) => [
      ...idsBySdk(own, now),
      ...idsBySdk(own, { ...now, timeUnixNano: '1767571260123000000' }),
      ...idsBySdk(own, { ...now, kind: 'gauge', version: '2', unit: '1' }),
      ...idsByPrometheus(own),
    ])
    assert.equal(ids.length, 20)
    assert.equal(new Set(ids).size, 1, ids.join(' '))
  })

  test('includes an attribute that was sent twice as the value that is kept', () => {
    const repeated = [['room', 'warm'] as const, ...series.attributes]
    const ids = [...idsBySdk(series, now), ...idsBySdk({ ...series, attributes: repeated }, now)]
    assert.equal(new Set(ids).size, 1)
  })

  test('differs when any part of it differs', () => {
    const { metric, resource, scope, attributes } = series
    const others: Series[] = [
      series,
      { ...series, metric: `${metric}2` },
      { ...series, metric: scope, scope: metric },
      { ...series, scope: '' },
      { ...series, resource: resource.slice(1) },
      { ...series, resource: [...resource, ['', '']] },
      { ...series, resource: [['service.name', 'cart'], ...resource.slice(1)] },
      { ...series, resource: [...resource, ...attributes], attributes: [] },
      { ...series, attributes: [] },
      { ...series, attributes: [...attributes, ['room ', 'cold']] },
      { ...series, attributes: [['', '']] },
      { ...series, attributes: [['room', '']] },
      { ...series, attributes: [['', 'room']] },
      { ...series, attributes: [['roo', 'm']] },
      { ...series, attributes: [['room', 'x'.repeat(127)]] },
      { ...series, attributes: [['room', 'x'.repeat(128)]] },
      {
        ...series,
        attributes: [
          ['a', 'b'],
          ['b', 'a'],
        ],
      },
      {
        ...series,
        attributes: [
          ['a', 'a'],
          ['b', 'b'],
        ],
      },
    ]
    const ids = others.map((own) => idsBySdk(own, now)[0])
    assert.equal(new Set(ids).size, others.length, ids.join(' '))
  })

  test('is distributed over both halves, also where series are numbered', () => {
    const [upper, lower, whole] = [new Set<number>(), new Set<number>(), new Set<string>()]
    const count = 200_000
    const row = new RowBinary()
    const id = new SeriesId()
    for (let i = 0; i < count; i++) {
      id.clear()
      for (const [key, value] of [
        ['pod', `shop-${i % 1000}`],
        ['shard', String(Math.floor(i / 1000))],
      ] as const) {
        row.clear()
        row.bareText(key)
        row.uint8(pairMiddle)
        row.bareText(value)
        id.addPair(row, 0, row.length, seriesParts.attributes)
      }
      upper.add(id.hi)
      lower.add(id.lo)
      whole.add(`${id.hi} ${id.lo}`)
    }
    assert.equal(whole.size, count)
    // By chance about five of this many are equal in 32 bits.
    for (const half of [upper, lower]) assert.ok(half.size > count - 50, `${count - half.size} are equal`)
  })
})
