// The limit of weeks in one request.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeHere } from '../../../tests/otlp/decode-here.ts'
import { encodeProto } from '../../../tests/otlp/otlp-messages.ts'
import { sampleExport } from '../../../tests/scenario/telemetry.ts'
import { AppError } from '../../core/app-error.ts'
import { partitionOf, partitionsMax, partitionsOf, requireFewPartitions } from './partition-spread.ts'

/** Monday 1970-01-05. */
const mondayNs = 345_600_000_000_000n
const weekNs = 604_800_000_000_000n

const batchOf = (timesNs: readonly bigint[]) =>
  decodeHere('logs', 'protobuf', encodeProto('logs', sampleExport('logs', timesNs)), 1n).batch
const weeks = (count: number, shiftNs = 0n) =>
  Array.from({ length: count }, (_, i) => mondayNs + BigInt(i) * weekNs + shiftNs)

const isTooMany = (error: unknown) => error instanceof AppError && error.code === 'body_too_large'

test('as many weeks as allowed fit, from their first instant to their last, and one more does not', () => {
  const both = (count: number) => [...weeks(count), ...weeks(count, weekNs - 1n)]
  requireFewPartitions(batchOf(both(partitionsMax)))
  assert.throws(() => requireFewPartitions(batchOf(both(partitionsMax + 1))), isTooMany)
})

test('two instants may be as far apart as can be stored', () => {
  requireFewPartitions(batchOf([1n, 5_661_791_999_999_999_999n]))
})

test('the weeks of all tables count together', () => {
  const half = batchOf(weeks(partitionsMax / 2))
  requireFewPartitions([...half, ...half])
  assert.throws(() => requireFewPartitions([...half, ...half, ...batchOf(weeks(1))]), isTooMany)
})

test('an empty batch has no weeks', () => requireFewPartitions([]))

test('partitions are counted exactly at both edges of a week, for the first weeks and the last', () => {
  const at = (timeNs: bigint) =>
    partitionOf('otel_logs', Number(timeNs >> 32n), Number(timeNs & 0xffff_ffffn))
  const first = at(0n)
  assert.equal(at(mondayNs - 1n), first)
  for (const week of [0n, 1n, 2900n, 9359n]) {
    const startNs = mondayNs + week * weekNs
    assert.deepEqual([at(startNs - 1n), at(startNs)], [first + Number(week), first + Number(week) + 1])
  }
  assert.notEqual(partitionOf('otel_traces', 0, 0), first)
})

test('the partitions of a batch are those of its rows', () => {
  const partitions = (timesNs: readonly bigint[]) =>
    batchOf(timesNs).map((part) => [...partitionsOf(part)].length)
  assert.deepEqual(partitions(weeks(1)), [1])
  assert.deepEqual(partitions([mondayNs + weekNs - 1n, mondayNs + weekNs]), [2])
  assert.deepEqual(partitions([mondayNs, mondayNs + 500n * weekNs, mondayNs + 1n]), [2])
})
