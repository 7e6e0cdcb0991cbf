// The same points in each store's own encoding. The binary bodies are made once for each sender by the
// encoders of the tests, with marks of fixed width in place of values and times, which are then filled in for
// every round. So millions of points are prepared in seconds, and their bytes are those of a library.

import { encodeProto } from '../../../tests/otlp/otlp-messages.ts'
import { compress, contentTypes, encodeRequest } from '../../../tests/prometheus/remote-write-messages.ts'
import { type Process, processesOf, type Round, roundsOf, type Shape } from './points.ts'

/** Content type and encoding of the bodies that are posted. */
export const formats = {
  otlp: { 'content-type': 'application/x-protobuf' },
  'remote-write-1': {
    'content-type': contentTypes['1.0'],
    'content-encoding': 'snappy',
    'x-prometheus-remote-write-version': '0.1.0',
  },
  'prometheus-text': { 'content-type': 'text/plain' },
  'influx-lines': { 'content-type': 'text/plain' },
  'postgres-copy': {},
} as const satisfies Readonly<Record<string, Readonly<Record<string, string>>>>

export type Format = keyof typeof formats

/** The bodies of a sender, oldest first. */
export function* bodiesOf(format: Format, shape: Shape, sender: number): Generator<Buffer> {
  const processes = processesOf(shape, sender)
  const write = writers[format](processes)
  for (const round of roundsOf(shape, sender, processes)) yield write(round)
}

type Writer = (round: Round) => Buffer

const writers: Readonly<Record<Format, (processes: readonly Process[]) => Writer>> = {
  otlp: otlpWriter,
  'remote-write-1': remoteWriter,
  'prometheus-text': (processes) =>
    lineWriter(processes, (process, series) => {
      const [, ...labels] = labelsOf(process, series)
      return `${series.name}{${labels.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(',')}} `
    }),
  'influx-lines': (processes) =>
    lineWriter(processes, (process, series) => {
      const tags = attributesOf(process, series).map(([name, value]) => `${name}=${value}`)
      return `${[series.name, ...tags].join(',')} value=`
    }),
  'postgres-copy': copyWriter,
}

type Series = Process['series'][number]

/** Names and values of the attributes of process and series. */
export function attributesOf(process: Process, series: Series): [string, string][] {
  return [...process.attributes, ...series.attributes].map(({ key, value }) => [
    key,
    'stringValue' in value ? value.stringValue : value.intValue,
  ])
}

const ownLabels: Readonly<Record<string, string>> = {
  'service.name': 'job',
  'service.instance.id': 'instance',
}

/** The same as labels, the name first and the others sorted, as Prometheus sends them. */
function labelsOf(process: Process, series: Series): [string, string][] {
  const labels = attributesOf(process, series).map(([name, value]): [string, string] => [
    ownLabels[name] ?? name.replaceAll('.', '_'),
    value,
  ])
  return [['__name__', series.name], ...labels.sort(([a], [b]) => (a < b ? -1 : 1))]
}

/** Eight bytes that mark the value of a point; no encoder writes them by accident. */
function valueMark(at: number): Buffer {
  const mark = Buffer.from('00005ac3993c7140', 'hex')
  mark.writeUInt16LE(at)
  return mark
}

const timeMark = Buffer.from('a5b6c7d8e9f10213', 'hex')

/** Returns the offset of the bytes at or after `from`; throws where they are missing. */
function offsetOf(template: Buffer, mark: Buffer, from: number): number {
  const offset = template.indexOf(mark, from)
  if (offset < 0) throw new Error('The encoder left out a mark.')
  return offset
}

function otlpWriter(processes: readonly Process[]): Writer {
  let count = 0
  const pointOf = (process: Process, series: Series) => {
    const mark = valueMark(count++)
    return {
      attributes: series.attributes,
      startTimeUnixNano: String(BigInt(process.startMs) * 1_000_000n),
      timeUnixNano: String(timeMark.readBigUInt64LE()),
      ...(series.kind === 'counter'
        ? { asInt: String(mark.readBigInt64LE()) }
        : { asDouble: mark.readDoubleLE() }),
    }
  }
  const metricsOf = (process: Process) =>
    [...Map.groupBy(process.series, ({ name }) => name)].map(([name, list]) => {
      const dataPoints = list.map((series) => pointOf(process, series))
      const head = { name, unit: '1', description: 'As the SDK says.' }
      return list[0]?.kind === 'counter'
        ? { ...head, sum: { aggregationTemporality: 2, isMonotonic: true, dataPoints } }
        : { ...head, gauge: { dataPoints } }
    })
  const template = encodeProto('metrics', {
    resourceMetrics: processes.map((process) => ({
      resource: { attributes: process.attributes },
      scopeMetrics: [
        { scope: { name: 'shop.instrumentation', version: '0.57.0' }, metrics: metricsOf(process) },
      ],
    })),
  })
  let end = 0
  const places = pointsOf(processes).map((point, at) => {
    const time = offsetOf(template, timeMark, end)
    const value = offsetOf(template, valueMark(at), time)
    end = value + 8
    return { ...point, time, value }
  })
  return ({ timesMs, values }) => {
    const body = Buffer.from(template)
    const times = timesMs.map((ms) => BigInt(ms) * 1_000_000n)
    for (const [at, { process, isCounter, time, value }] of places.entries()) {
      body.writeBigUInt64LE(times[process] ?? 0n, time)
      if (isCounter) body.writeBigInt64LE(BigInt(values[at] ?? 0), value)
      else body.writeDoubleLE(values[at] ?? 0, value)
    }
    return body
  }
}

/** For each point in order, the index of its process. */
function pointsOf(processes: readonly Process[]) {
  return processes.flatMap((process, index) =>
    process.series.map(({ kind }) => ({ process: index, isCounter: kind === 'counter' })),
  )
}

function remoteWriter(processes: readonly Process[]): Writer {
  // Any instant of these decades has six bytes as a varint.
  const someMs = processes[0]?.startMs ?? 0
  let count = 0
  const series = processes.flatMap((process) =>
    process.series.map((one) => ({
      labels: labelsOf(process, one),
      samples: [{ value: valueMark(count++).readDoubleLE(), timestamp: someMs }],
    })),
  )
  const template = encodeRequest('1.0', series)
  let end = 0
  const places = pointsOf(processes).map(({ process }, at) => {
    const value = offsetOf(template, valueMark(at), end)
    end = value + 8
    if (template[end] !== 0x10) throw new Error('The encoder put something before the time.')
    return { process, value }
  })
  return ({ timesMs, values }) => {
    const times = timesMs.map(varint)
    for (const [at, { process, value }] of places.entries()) {
      template.writeDoubleLE(values[at] ?? 0, value)
      times[process]?.copy(template, value + 9)
    }
    return compress(template)
  }
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128)
  return Buffer.from([...bytes, rest])
}

function lineWriter(
  processes: readonly Process[],
  head: (process: Process, series: Series) => string,
): Writer {
  const heads = processes.flatMap((process) => process.series.map((series) => head(process, series)))
  const points = pointsOf(processes)
  return ({ timesMs, values }) =>
    Buffer.from(
      heads.map((text, at) => `${text}${values[at]} ${timesMs[points[at]?.process ?? 0]}\n`).join(''),
      'latin1',
    )
}

/** Microseconds from 1970 to 2000, the epoch of PostgreSQL. */
const postgresEpochUs = 946_684_800_000_000n

/** COPY BINARY: a header, three fields a row with their lengths, and an end. */
function copyWriter(processes: readonly Process[]): Writer {
  const ids = processes.flatMap(({ series }) => series.map(({ id }) => id))
  const points = pointsOf(processes)
  const [headBytes, rowBytes] = [19, 34]
  const template = Buffer.alloc(headBytes + rowBytes * ids.length + 2)
  template.write('PGCOPY\n\xff\r\n\0', 'latin1')
  for (const [at, id] of ids.entries()) {
    const row = headBytes + at * rowBytes
    template.writeInt16BE(3, row)
    template.writeInt32BE(4, row + 2)
    template.writeInt32BE(id, row + 6)
    template.writeInt32BE(8, row + 10)
    template.writeInt32BE(8, row + 22)
  }
  template.writeInt16BE(-1, template.length - 2)
  return ({ timesMs, values }) => {
    const body = Buffer.from(template)
    const times = timesMs.map((ms) => BigInt(ms) * 1000n - postgresEpochUs)
    for (const [at, { process }] of points.entries()) {
      const row = headBytes + at * rowBytes
      body.writeBigInt64BE(times[process] ?? 0n, row + 14)
      body.writeDoubleBE(values[at] ?? 0, row + 26)
    }
    return body
  }
}
