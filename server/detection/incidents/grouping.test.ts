// Which anomalies are one incident: only the rule, without a store.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Anomaly } from '../../../contract/detection/detectors.ts'
import type { KnownDeploy } from '../../deploys/deploys.ts'
import { CallGraph } from './call-graph.ts'
import { anomalyIdOf, groupAnomalies, type Surroundings } from './grouping.ts'
import type { TimedAnomaly } from './timed-anomalies.ts'

const minuteNs = 60_000_000_000n
const hour = 60

interface Given {
  readonly id: string
  readonly from: number
  readonly until: number
  readonly service?: string | null
  readonly group?: Readonly<Record<string, string>>
}

function timed({ from, group = {}, id, service = null, until }: Given): TimedAnomaly {
  return {
    // The rule reads only id and group of the anomaly.
    anomaly: { id: `ano_${id}`, group } as Partial<Anomaly> as Anomaly,
    startedNs: BigInt(from) * minuteNs,
    seenUntilNs: BigInt(until) * minuteNs,
    service,
  }
}

const shop: readonly (readonly [string, string])[] = [
  ['storefront', 'gateway'],
  ['gateway', 'checkout'],
  ['gateway', 'search'],
  ['checkout', 'payments'],
  ['billing', 'ledger'],
]
const inShop: Surroundings = { graph: new CallGraph(shop), deploys: [] }
const unknown: Surroundings = { graph: new CallGraph([]), deploys: [] }

/** Incidents by id, with the ids of their members. */
function grouped(given: readonly Given[], around = inShop): Record<string, string> {
  const groups = groupAnomalies(given.map(timed), () => around)
  return Object.fromEntries(
    groups.map(({ id, members }) => [
      id,
      members
        .map(({ anomaly }) => anomaly.id.slice(4))
        .sort()
        .join(''),
    ]),
  )
}

test('anomalies of one service that overlap are one incident, also where the later follows by hours', () => {
  const leak = { id: 'a', from: 0, until: 430, service: 'inventory' }
  const failure = { id: 'b', from: 420, until: 430, service: 'inventory' }
  assert.deepEqual(grouped([leak, failure]), { inc_a: 'ab' })
  assert.deepEqual(grouped([{ ...leak, until: 300 }, failure]), { inc_a: 'a', inc_b: 'b' })
})

test('an anomaly that lasts for days does not make everything that happens meanwhile part of its incident', () => {
  const shift = { id: 'a', from: 0, until: 72 * hour, service: 'inventory' }
  const later = { id: 'b', from: 13 * hour, until: 14 * hour, service: 'inventory' }
  assert.deepEqual(grouped([shift, later]), { inc_a: 'a', inc_b: 'b' })
})

test('a caller that follows its callee within the hour belongs to the incident, one without a call does not', () => {
  const payments = { id: 'a', from: 0, until: 90, service: 'payments' }
  const storefront = { id: 'b', from: 40, until: 90, service: 'storefront' }
  const search = { id: 'c', from: 40, until: 90, service: 'search' }
  assert.deepEqual(grouped([payments, storefront]), { inc_a: 'ab' })
  assert.deepEqual(grouped([payments, search]), { inc_a: 'a', inc_c: 'c' })
  assert.deepEqual(grouped([payments, { ...storefront, from: 61 }]), { inc_a: 'a', inc_b: 'b' })
})

test('services that begin together are one incident, unless the calls show that nothing connects them', () => {
  const payments = { id: 'a', from: 0, until: 30, service: 'payments' }
  const search = { id: 'b', from: 15, until: 30, service: 'search' }
  const ledger = { id: 'c', from: 15, until: 30, service: 'ledger' }
  assert.deepEqual(grouped([payments, search]), { inc_a: 'ab' })
  assert.deepEqual(grouped([payments, ledger]), { inc_a: 'a', inc_c: 'c' })
  assert.deepEqual(grouped([payments, ledger], unknown), { inc_a: 'ac' })
  assert.deepEqual(grouped([payments, { ...search, from: 16 }], unknown), { inc_a: 'a', inc_b: 'b' })
})

test('a shared attribute connects what no call connects', () => {
  const one = { id: 'a', from: 0, until: 90, service: 'payments', group: { 'host.name': 'node-3' } }
  const other = { id: 'b', from: 40, until: 90, service: 'ledger', group: { 'host.name': 'node-3' } }
  assert.deepEqual(grouped([one, other]), { inc_a: 'ab' })
  assert.deepEqual(grouped([one, { ...other, group: { 'host.name': 'node-4' } }]), { inc_a: 'a', inc_b: 'b' })
  const empty = { 'host.name': '' }
  assert.deepEqual(
    grouped([
      { ...one, group: empty },
      { ...other, group: empty },
    ]),
    { inc_a: 'a', inc_b: 'b' },
  )
})

test('services that were released together and deviate soon after are one incident', () => {
  const deploy = (service: string, minute: number): KnownDeploy => ({
    ...{ service, environment: null, version: '2', previous_version: '1', told_by: 'version' },
    atNs: BigInt(minute) * minuteNs,
  })
  const one = { id: 'a', from: 100, until: 200, service: 'payments' }
  const other = { id: 'b', from: 140, until: 200, service: 'search' }
  const after = (...deploys: KnownDeploy[]) => grouped([one, other], { ...inShop, deploys })
  assert.deepEqual(after(deploy('payments', 95), deploy('search', 105)), { inc_a: 'ab' })
  assert.deepEqual(after(deploy('payments', 95), deploy('search', 115)), { inc_a: 'a', inc_b: 'b' })
  assert.deepEqual(after(deploy('payments', 95)), { inc_a: 'a', inc_b: 'b' })
})

test('anomalies without a service join by their time alone', () => {
  const visitors = { id: 'a', from: 0, until: 60 }
  const rate = { id: 'b', from: 10, until: 60, service: 'storefront' }
  assert.deepEqual(grouped([visitors, rate]), { inc_a: 'ab' })
  assert.deepEqual(grouped([visitors, { ...rate, from: 20 }]), { inc_a: 'a', inc_b: 'b' })
})

test('the id is that of the oldest record: it stays when members join, also ones that began before', () => {
  const recorded = { id: 'm', from: 30, until: 90, service: 'checkout' }
  const joined = { id: 'n', from: 20, until: 90, service: 'payments' }
  assert.deepEqual(grouped([recorded]), { inc_m: 'm' })
  assert.deepEqual(grouped([recorded, joined]), { inc_m: 'mn' })
  assert.equal(anomalyIdOf('inc_m'), 'ano_m')
  assert.equal(anomalyIdOf('ano_m'), null)
})

test('two incidents that a third anomaly connects are one, with the older id', () => {
  const one = { id: 'a', from: 0, until: 100, service: 'payments' }
  const other = { id: 'b', from: 40, until: 100, service: 'search' }
  assert.deepEqual(grouped([one, other]), { inc_a: 'a', inc_b: 'b' })
  const caller = { id: 'c', from: 45, until: 100, service: 'gateway' }
  assert.deepEqual(grouped([one, other, caller]), { inc_a: 'abc' })
})

const someAnomaly = fc.record({
  from: fc.integer({ min: 0, max: 20 * hour }),
  lasts: fc.integer({ min: 1, max: 15 * hour }),
  service: fc.constantFrom('payments', 'checkout', 'gateway', 'search', 'ledger', 'billing', null),
})

test('whatever the order, each anomaly is in exactly one incident, and the incidents are the same', () => {
  const property = fc.property(fc.array(someAnomaly, { maxLength: 25 }), fc.integer(), (plans, seed) => {
    const given = plans.map(({ from, lasts, service }, i) => ({
      ...{ id: String(i).padStart(2, '0'), from, service },
      until: from + lasts,
    }))
    const [shuffled = []] = fc.sample(fc.shuffledSubarray(given, { minLength: given.length }), {
      seed,
      numRuns: 1,
    })
    const found = grouped(given)
    assert.deepEqual(grouped(shuffled), found)
    const all = Object.values(found).join('')
    assert.equal(all.length, 2 * given.length)
  })
  fc.assert(property, { numRuns: 200 })
})

test('an anomaly that joins never gives an incident a younger id', () => {
  const property = fc.property(fc.array(someAnomaly, { minLength: 2, maxLength: 20 }), (plans) => {
    const given = plans.map(({ from, lasts, service }, i) => ({
      ...{ id: String.fromCharCode(97 + i), from, service },
      until: from + lasts,
    }))
    const before = grouped(given.slice(0, -1))
    const after = grouped(given)
    for (const [id, members] of Object.entries(before)) {
      const [now] =
        Object.entries(after).find(([, all]) => [...members].every((one) => all.includes(one))) ?? []
      assert.ok(now !== undefined && now <= id, `${id} became ${now}`)
    }
  })
  fc.assert(property, { numRuns: 200 })
})
