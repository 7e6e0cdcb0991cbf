// How much of the commits an organisation may use: everything while it is alone, small parts beside others,
// with pauses while it sends most of what arrives.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock } from '../../core/manual-clock.ts'
import { fairPart, groupBytes } from './commit-parts.ts'
import { CommitShares } from './commit-shares.ts'

const megabyte = 1024 * 1024

/** @param reserved the bytes that wait of each organisation */
function scene({ reserved = 20 * megabyte, areCoresShort = false } = {}) {
  const clock = new ManualClock(1_767_600_000_000)
  const shares = new CommitShares({
    clock,
    reservedBy: () => reserved,
    areCoresShort: () => areCoresShort,
  })
  return { clock, shares }
}

test('an organisation that is alone has whole commits and no pause', () => {
  const { shares } = scene()
  shares.count('flood', 500 * megabyte)
  assert.deepEqual([shares.mostBytes('flood'), shares.isFlood('flood')], [groupBytes, false])
  shares.ended(['flood'], shares.nowMs() - 400)
  assert.equal(shares.pauseMs('flood'), 0)
})

test('an organisation that sends most beside others has small commits, each with a pause as long as it took', async () => {
  const { clock, shares } = scene()
  shares.count('calm', megabyte)
  shares.count('flood', 9 * megabyte)
  assert.ok(shares.mostBytes('flood') <= groupBytes / 4)
  assert.deepEqual([shares.isFlood('flood'), shares.isFlood('calm')], [true, false])
  const beganMs = shares.nowMs()
  await clock.advance(300)
  shares.ended(['flood', 'calm'], beganMs)
  assert.equal(shares.pauseMs('calm'), 0)
  assert.equal(shares.pauseMs('flood'), 300)
  await clock.advance(299)
  assert.equal(shares.pauseMs('flood'), 1)
  await clock.advance(1)
  assert.equal(shares.pauseMs('flood'), 0)
})

test('while cores are short the pause is three times as long as the commit', async () => {
  const { shares } = scene({ areCoresShort: true })
  shares.count('calm', megabyte)
  shares.count('flood', 9 * megabyte)
  shares.ended(['flood', 'calm'], shares.nowMs() - 100)
  assert.deepEqual([shares.pauseMs('flood'), shares.pauseMs('calm')], [300, 0])
})

test('an organisation that sends most is no flood where all that it has fits into a commit', () => {
  const { shares } = scene({ reserved: 8 * megabyte })
  shares.count('little', 1)
  shares.count('usual', 9 * megabyte)
  assert.ok(!shares.isFlood('usual'))
  shares.ended(['usual'], shares.nowMs() - 400)
  assert.equal(shares.pauseMs('usual'), 0)
})

test('the first commit of a flood is small too, and of two organisations that send the same none pauses', () => {
  const { shares } = scene()
  shares.count('one', 10 * megabyte)
  shares.count('other', 9 * megabyte)
  for (const one of ['one', 'other']) {
    assert.ok(shares.mostBytes(one) <= groupBytes / 4)
    assert.ok(!shares.isFlood(one))
    shares.ended([one], shares.nowMs() - 400)
    assert.equal(shares.pauseMs(one), 0)
  }
})

test('the limit ends within ten seconds after the others have sent their last', async () => {
  const { clock, shares } = scene()
  shares.count('calm', megabyte)
  for (let second = 0; second < 10; second++) {
    shares.count('flood', 9 * megabyte)
    if (second < 5) assert.ok(shares.mostBytes('flood') < groupBytes)
    await clock.advance(1000)
  }
  shares.count('flood', 9 * megabyte)
  assert.equal(shares.mostBytes('flood'), groupBytes)
})

test('a part of a commit has no more of an organisation than it may have, but always one slice', () => {
  const slice = (tenantId: string, bytes: number) => ({ place: { tenantId, placement: 1 }, bytes })
  const flood = Array.from({ length: 9 }, () => slice('flood', 3 * megabyte))
  const calm = slice('calm', megabyte)
  const most = (tenantId: string) => (tenantId === 'flood' ? 8 * megabyte : groupBytes)
  assert.deepEqual(fairPart([...flood, calm], most), [flood[0], calm, flood[1]])
  const large = slice('flood', 20 * megabyte)
  assert.deepEqual(fairPart([large, ...flood], most), [large])
})
