// The limit of weeks in one request.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeHere } from '../../../tests/otlp/decode-here.ts'
import { encodeProto } from '../../../tests/otlp/otlp-messages.ts'
import { sampleExport } from '../../../tests/scenario/telemetry.ts'
import { AppError } from '../../core/app-error.ts'
import { partitionsMax, requireFewPartitions } from './partition-spread.ts'

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
