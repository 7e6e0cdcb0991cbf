// Which rows are in one commit, by their size and by their partitions.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CommitCost, WaitingCost } from './commit-cost.ts'
import { fairPart, groupBytes, hasManyPartitions, placementsOfCommit } from './commit-parts.ts'

const megabyte = 1024 * 1024

const partitionsFrom = (first: number, count: number) =>
  new Set(Array.from({ length: count }, (_, at) => first + at))

const slice = (tenantId: string, bytes: number, partitions = partitionsFrom(0, 1)) => ({
  place: { tenantId, placement: 1 },
  bytes,
  partitions,
})

describe('the part of a placement', () => {
  test('has no more of an organisation than it may have, but always one slice', () => {
    const flood = Array.from({ length: 9 }, () => slice('flood', 3 * megabyte))
    const calm = slice('calm', megabyte)
    const most = (tenantId: string) => (tenantId === 'flood' ? 8 * megabyte : groupBytes)
    assert.deepEqual(fairPart([...flood, calm], most), [calm, flood[0], flood[1]])
    const large = slice('flood', 20 * megabyte)
    assert.deepEqual(fairPart([large, ...flood], most), [large])
  })

  test('of an organisation that is alone has at most 128 partitions, however few bytes', () => {
    const own = Array.from({ length: 8 }, (_, at) => slice('own', 4000, partitionsFrom(at * 60, 60)))
    assert.deepEqual(
      fairPart(own, () => groupBytes),
      own.slice(0, 2),
    )
    const one = slice('own', 4000, partitionsFrom(0, 128))
    assert.deepEqual(
      fairPart([one, ...own.slice(3)], () => groupBytes),
      [one],
    )
  })

  test('has every request of an organisation whose requests are of the same weeks', () => {
    const own = Array.from({ length: 500 }, () => slice('own', 4000, partitionsFrom(7, 105)))
    assert.equal(fairPart(own, () => 8 * megabyte).length, 500)
  })

  test('has the rows of a neighbour with few partitions, who came last, and not all of many', () => {
    const others = Array.from({ length: 6 }, (_, at) =>
      slice(`many-${at % 3}`, 4000, partitionsFrom(at * 128, 128)),
    )
    const calm = slice('calm', 4000, partitionsFrom(5000, 2))
    const part = fairPart([...others, calm], () => 8 * megabyte)
    assert.deepEqual(part, [calm, others[0]])
  })
})

describe('the placements of a commit', () => {
  const waiting = (name: string, bytes: number, partitions: number, first = 0) => {
    const cost = new CommitCost()
    cost.add({ bytes, partitions: partitionsFrom(first, partitions) })
    return { name, cost }
  }

  test('a placement with few partitions does not wait for one with many', () => {
    const [calm, many] = [waiting('calm', 4000, 2), waiting('many', 4000, 128)]
    assert.deepEqual(placementsOfCommit([calm, many]), [calm])
    assert.deepEqual(placementsOfCommit([many, calm]), [many])
    assert.deepEqual([hasManyPartitions(calm), hasManyPartitions(many)], [false, true])
  })

  test('eight placements with two weeks of every table share a commit, and two with many partitions do not', () => {
    const usual = Array.from({ length: 9 }, (_, at) => waiting(`usual-${at}`, 4000, 14))
    assert.deepEqual(placementsOfCommit(usual), usual.slice(0, 8))
    const many = [waiting('one', 4000, 120), waiting('other', 4000, 120)]
    assert.deepEqual(placementsOfCommit(many), many.slice(0, 1))
  })
})

describe('the cost of what waits', () => {
  test('of usual rows is their size, also of very many small requests', () => {
    const cost = new WaitingCost()
    for (let request = 0; request < 1000; request++) {
      assert.equal(cost.add('own', slice('own', 1000, partitionsFrom(0, 14))), 1000)
    }
    assert.equal(cost.of('own'), 1_000_000)
  })

  test('of requests with ever other weeks rises with the weeks, and ends with the requests', () => {
    const cost = new WaitingCost()
    const requests = [0, 1].map((at) => slice('own', 1000, partitionsFrom(at * 128, 128)))
    const added = requests.map((request) => cost.add('own', request))
    assert.deepEqual(added, [7 * megabyte, 8 * megabyte])
    assert.deepEqual([cost.of('own'), cost.of('neighbour')], [15 * megabyte, 0])
    for (const request of requests) cost.remove('own', request)
    assert.equal(cost.of('own'), 0)
  })
})
