// The bench of neighbours is reliable: its list is complete, its result follows the bars, and its attacks
// reach the service that it starts, whose death it detects.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../../tests/fixtures.ts'
import { Attacker } from './attack.ts'
import { attackNamed, everyAttack } from './attacks/every-attack.ts'
import {
  type AttackEffect,
  barMs,
  latenciesBetween,
  middleTrial,
  missedBars,
  recoveredSinceMs,
  refusalsSince,
} from './bars.ts'
import type { Sample } from './honest.ts'
import { Service } from './service.ts'

const sample = (fields: Partial<Sample>): Sample => ({
  activity: 'chart',
  sentMs: 0,
  ms: 10,
  refusal: null,
  ...fields,
})

test('the list has at least 25 attacks, each with a unique name and a sentence', () => {
  assert.ok(everyAttack.length >= 25, `${everyAttack.length} attacks`)
  assert.equal(new Set(everyAttack.map(({ name }) => name)).size, everyAttack.length)
  for (const { name, does } of everyAttack) {
    assert.match(name, /^[a-z0-9-]+$/)
    assert.match(does, /^[A-Z].*\.$/, name)
  }
})

const quick = { count: 100, p50Ms: 20, p99Ms: 100 }
const fine: AttackEffect = {
  attack: 'none',
  calm: { ingest: quick, grpc: quick, chart: quick, erasure: quick, erased: quick, detector: quick },
  attacked: { ingest: quick, grpc: quick, chart: quick, erasure: quick, erased: quick, detector: quick },
  refusals: {},
  peakMb: 900,
  hasDied: false,
  recoverySeconds: 0,
}

test('every missed bar is named, and no other', () => {
  assert.deepEqual(missedBars(fine), [])
  const chart = (p99Ms: number) => ({ ...fine, attacked: { ...fine.attacked, chart: { ...quick, p99Ms } } })
  assert.deepEqual(missedBars(chart(500)), [])
  assert.deepEqual(missedBars(chart(501)), ['chart 0.5 s'])
  const slow = { ...chart(1900), calm: { ...fine.calm, chart: { ...quick, p99Ms: 1000 } } }
  assert.deepEqual(missedBars(slow), [], 'twice what it was')
  assert.deepEqual(missedBars({ ...fine, refusals: { 'ingest 503': 2, 'chart 429': 1 } }), ['3 refused'])
  assert.deepEqual(missedBars({ ...fine, peakMb: 2501 }), ['2501 MB'])
  assert.deepEqual(missedBars({ ...fine, recoverySeconds: 5.1 }), ['recovery 5.1 s'])
  assert.deepEqual(missedBars({ ...fine, recoverySeconds: null }), ['no recovery'])
  assert.deepEqual(missedBars({ ...fine, hasDied: true }), ['died'])
  const unanswered = {
    ...fine,
    attacked: { ...fine.attacked, chart: { count: 0, p50Ms: null, p99Ms: null } },
  }
  assert.deepEqual(missedBars(unanswered), ['chart: no response'])
  assert.equal(barMs(null), 500)
})

test('the middle one of three trials counts, with the refusals, the memory and the deaths of all', () => {
  const trial = (p99Ms: number, more: Partial<AttackEffect> = {}) => ({
    ...fine,
    attacked: { ...fine.attacked, chart: { ...quick, p99Ms } },
    ...more,
  })
  assert.deepEqual(missedBars(middleTrial([trial(900), trial(300), trial(400)])), [])
  assert.deepEqual(missedBars(middleTrial([trial(900), trial(300), trial(700)])), ['chart 0.7 s'])
  const refused = trial(200, { refusals: { 'ingest 503': 2 } })
  const large = trial(400, { refusals: { 'ingest 503': 1 }, peakMb: 3000 })
  assert.deepEqual(missedBars(middleTrial([refused, trial(300), large])), ['3 refused', '3000 MB'])
  const silent = trial(1, { attacked: { ...fine.attacked, chart: { count: 0, p50Ms: null, p99Ms: null } } })
  const lasting = trial(1, { recoverySeconds: null })
  assert.deepEqual(missedBars(middleTrial([trial(300), silent, lasting])), ['chart: no response'])
  const dead = trial(1, { hasDied: true })
  assert.deepEqual(missedBars(middleTrial([dead, trial(300), trial(2)])), ['died'])
})

test('latencies are those of requests sent in the phase, and refusals because of an own erasure do not count', () => {
  const samples = [
    sample({ sentMs: 5, ms: 1 }),
    sample({ sentMs: 15, ms: 7000 }),
    sample({ sentMs: 16, ms: 3, refusal: '503' }),
    sample({ sentMs: 17, activity: 'ingest', refusal: 'own erasure' }),
    sample({ sentMs: 25, ms: 2 }),
  ]
  assert.deepEqual(latenciesBetween(samples, 10, 20).chart, { count: 1, p50Ms: 7000, p99Ms: 7000 })
  assert.deepEqual(refusalsSince(samples, 10), { 'chart 503': 1 })
  assert.deepEqual(refusalsSince(samples, 20), {})
})

test('the service has recovered since the first of enough quick charts in a row', () => {
  const charts = [10, 900, 10, 20, 30].map((ms, at) => sample({ sentMs: at, ms }))
  assert.equal(recoveredSinceMs(charts, 500, 3), 2)
  assert.equal(recoveredSinceMs(charts, 500, 4), null)
  assert.equal(recoveredSinceMs([...charts, sample({ sentMs: 5, refusal: '503' })], 500, 1), null)
})

test('an attack reaches the service, and the death of a service is noticed', async () => {
  const tree = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
  const folder = temporaryFolder()
  const service = await Service.start(tree, join(folder, 'data'))
  try {
    const { host, port, grpcPort } = service
    const nobody = { owner: '', admin: '', member: '', viewer: '', ingest: '' }
    const orders = { tenantId: 'nobody', secrets: nobody, accomplices: [], seconds: 1 }
    const attacker = new Attacker({ host, port, grpcPort, ...orders })
    attacker.begin()
    await attackNamed('metrics-and-docs-read').run(attacker)
    assert.ok((attacker.tally.get('200') ?? 0) > 0, JSON.stringify([...attacker.tally]))
    assert.ok(service.peakMb > 50 && service.cpuSeconds > 0)
    assert.equal(service.hasDied, false)
    await service.die()
    assert.equal(service.hasDied, true)
  } finally {
    await service.kill()
    rmSync(folder, { recursive: true, force: true })
  }
})
