// Which anomalies are one incident: only the rule, without a store.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Anomaly } from '../../../contract/detection/detectors.ts'
import type { MemberLink } from '../../../contract/detection/incidents.ts'
import { withTurns } from '../../../tests/with-turns.ts'
import type { KnownDeploy } from '../../deploys/deploys.ts'
import { CallGraph } from './call-graph.ts'
import { anomalyIdOf, burstOf, byStart, groupAnomalies, type Surroundings } from './grouping.ts'
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

function deployOf({ at, service }: { readonly at: number; readonly service: string }): KnownDeploy {
  return {
    ...{ service, environment: null, version: '2', previous_version: '1', told_by: 'version' },
    atNs: BigInt(at) * minuteNs,
  }
}

/** Incidents by id, with the ids of their members. */
async function grouped(given: readonly Given[], around = inShop): Promise<Record<string, string>> {
  const groups = await groupAnomalies(given.map(timed), () => around)
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

test('anomalies of one service that overlap are one incident, also where the later follows by hours', async () => {
  const leak = { id: 'a', from: 0, until: 430, service: 'inventory' }
  const failure = { id: 'b', from: 420, until: 430, service: 'inventory' }
  assert.deepEqual(await grouped([leak, failure]), { inc_a: 'ab' })
  assert.deepEqual(await grouped([{ ...leak, until: 300 }, failure]), { inc_a: 'a', inc_b: 'b' })
})

test('an anomaly that lasts for days does not make everything that happens meanwhile part of its incident', async () => {
  const shift = { id: 'a', from: 0, until: 72 * hour, service: 'inventory' }
  const later = { id: 'b', from: 13 * hour, until: 14 * hour, service: 'inventory' }
  assert.deepEqual(await grouped([shift, later]), { inc_a: 'a', inc_b: 'b' })
})

test('a caller that follows its callee within the hour belongs to the incident, one without a call does not', async () => {
  const payments = { id: 'a', from: 0, until: 90, service: 'payments' }
  const storefront = { id: 'b', from: 40, until: 90, service: 'storefront' }
  const search = { id: 'c', from: 40, until: 90, service: 'search' }
  assert.deepEqual(await grouped([payments, storefront]), { inc_a: 'ab' })
  assert.deepEqual(await grouped([payments, search]), { inc_a: 'a', inc_c: 'c' })
  assert.deepEqual(await grouped([payments, { ...storefront, from: 61 }]), { inc_a: 'a', inc_b: 'b' })
})

test('services that begin together are one incident, unless the calls show that nothing connects them', async () => {
  const payments = { id: 'a', from: 0, until: 30, service: 'payments' }
  const search = { id: 'b', from: 15, until: 30, service: 'search' }
  const ledger = { id: 'c', from: 15, until: 30, service: 'ledger' }
  assert.deepEqual(await grouped([payments, search]), { inc_a: 'ab' })
  assert.deepEqual(await grouped([payments, ledger]), { inc_a: 'a', inc_c: 'c' })
  assert.deepEqual(await grouped([payments, ledger], unknown), { inc_a: 'ac' })
  assert.deepEqual(await grouped([payments, { ...search, from: 16 }], unknown), { inc_a: 'a', inc_b: 'b' })
})

test('a shared attribute connects what no call connects', async () => {
  const one = { id: 'a', from: 0, until: 90, service: 'payments', group: { 'host.name': 'node-3' } }
  const other = { id: 'b', from: 40, until: 90, service: 'ledger', group: { 'host.name': 'node-3' } }
  assert.deepEqual(await grouped([one, other]), { inc_a: 'ab' })
  assert.deepEqual(await grouped([one, { ...other, group: { 'host.name': 'node-4' } }]), {
    inc_a: 'a',
    inc_b: 'b',
  })
  const empty = { 'host.name': '' }
  assert.deepEqual(
    await grouped([
      { ...one, group: empty },
      { ...other, group: empty },
    ]),
    { inc_a: 'a', inc_b: 'b' },
  )
})

test('services that were released together and deviate soon after are one incident', async () => {
  const deploy = (service: string, at: number) => deployOf({ service, at })
  const one = { id: 'a', from: 100, until: 200, service: 'payments' }
  const other = { id: 'b', from: 140, until: 200, service: 'search' }
  const after = (...deploys: KnownDeploy[]) => grouped([one, other], { ...inShop, deploys })
  assert.deepEqual(await after(deploy('payments', 95), deploy('search', 105)), { inc_a: 'ab' })
  assert.deepEqual(await after(deploy('payments', 95), deploy('search', 115)), { inc_a: 'a', inc_b: 'b' })
  assert.deepEqual(await after(deploy('payments', 95)), { inc_a: 'a', inc_b: 'b' })
})

test('anomalies without a service join by their time alone', async () => {
  const visitors = { id: 'a', from: 0, until: 60 }
  const rate = { id: 'b', from: 10, until: 60, service: 'storefront' }
  assert.deepEqual(await grouped([visitors, rate]), { inc_a: 'ab' })
  assert.deepEqual(await grouped([visitors, { ...rate, from: 20 }]), { inc_a: 'a', inc_b: 'b' })
})

test('the id is that of the oldest record: it stays when members join, also ones that began before', async () => {
  const recorded = { id: 'm', from: 30, until: 90, service: 'checkout' }
  const joined = { id: 'n', from: 20, until: 90, service: 'payments' }
  assert.deepEqual(await grouped([recorded]), { inc_m: 'm' })
  assert.deepEqual(await grouped([recorded, joined]), { inc_m: 'mn' })
  assert.equal(anomalyIdOf('inc_m'), 'ano_m')
  assert.equal(anomalyIdOf('ano_m'), null)
})

test('two incidents that a third anomaly connects are one, with the older id', async () => {
  const one = { id: 'a', from: 0, until: 100, service: 'payments' }
  const other = { id: 'b', from: 40, until: 100, service: 'search' }
  assert.deepEqual(await grouped([one, other]), { inc_a: 'a', inc_b: 'b' })
  const caller = { id: 'c', from: 45, until: 100, service: 'gateway' }
  assert.deepEqual(await grouped([one, other, caller]), { inc_a: 'abc' })
})

const someAnomaly = fc.record({
  from: fc.integer({ min: 0, max: 20 * hour }),
  lasts: fc.integer({ min: 1, max: 15 * hour }),
  service: fc.constantFrom('payments', 'checkout', 'gateway', 'search', 'ledger', 'billing', null),
})

test('whatever the order, each anomaly is in exactly one incident, and the incidents are the same', async () => {
  const property = fc.asyncProperty(
    fc.array(someAnomaly, { maxLength: 25 }),
    fc.integer(),
    async (plans, seed) => {
      const given = plans.map(({ from, lasts, service }, i) => ({
        ...{ id: String(i).padStart(2, '0'), from, service },
        until: from + lasts,
      }))
      const [shuffled = []] = fc.sample(fc.shuffledSubarray(given, { minLength: given.length }), {
        seed,
        numRuns: 1,
      })
      const found = await grouped(given)
      assert.deepEqual(await grouped(shuffled), found)
      const all = Object.values(found).join('')
      assert.equal(all.length, 2 * given.length)
    },
  )
  await fc.assert(property, { numRuns: 200 })
})

test('an anomaly that joins never gives an incident a younger id', async () => {
  const property = fc.asyncProperty(fc.array(someAnomaly, { minLength: 2, maxLength: 20 }), async (plans) => {
    const given = plans.map(({ from, lasts, service }, i) => ({
      ...{ id: String.fromCharCode(97 + i), from, service },
      until: from + lasts,
    }))
    const before = await grouped(given.slice(0, -1))
    const after = await grouped(given)
    for (const [id, members] of Object.entries(before)) {
      const [now] =
        Object.entries(after).find(([, all]) => [...members].every((one) => all.includes(one))) ?? []
      assert.ok(now !== undefined && now <= id, `${id} became ${now}`)
    }
  })
  await fc.assert(property, { numRuns: 200 })
})

const deployedServices = ['payments', 'checkout', 'gateway', 'search', 'ledger']

const someDeploy = fc.record({
  service: fc.constantFrom(...deployedServices),
  at: fc.integer({ min: -2 * hour, max: 8 * hour }),
})

const someLabelled = fc.record({
  from: fc.integer({ min: 0, max: 8 * hour }),
  lasts: fc.integer({ min: 1, max: 15 * hour }),
  service: fc.constantFrom(...deployedServices, 'billing', null),
  group: fc.dictionary(fc.constantFrom('host', 'service', 'region'), fc.constantFrom('', 'a', 'b')),
})

/** The links of each pair, from the definition: no order, no shortcut. */
function plainLinksOf(
  one: TimedAnomaly,
  other: TimedAnomaly,
  { deploys, graph }: Surroundings,
): MemberLink[] {
  const apart = Number((other.startedNs - one.startedNs) / minuteNs)
  if (other.startedNs > one.seenUntilNs + 15n * minuteNs || apart > 12 * hour) return []
  if (one.service !== null && one.service === other.service) return ['same_service']
  if (apart > hour) return []
  const links: MemberLink[] = []
  const [own, its] = [one.anomaly.group, other.anomaly.group]
  if (Object.keys(own).some((key) => key !== 'service' && own[key] !== '' && own[key] === its[key]))
    links.push('same_attributes')
  const areKnown = one.service !== null && other.service !== null
  if (areKnown && graph.isCall(one.service, other.service)) links.push('calls')
  const before = ({ service, startedNs }: TimedAnomaly) =>
    deploys.filter(
      (deploy) =>
        deploy.service === service &&
        deploy.atNs <= startedNs + 15n * minuteNs &&
        deploy.atNs >= startedNs - 60n * minuteNs,
    )
  const isOneRelease = before(one).some(({ atNs }) =>
    before(other).some((deploy) => Math.abs(Number((deploy.atNs - atNs) / minuteNs)) <= 15),
  )
  if (areKnown && isOneRelease) links.push('same_deploy')
  if (apart <= 15 && !(areKnown && graph.areApart(one.service, other.service))) links.push('began_together')
  return links
}

test('groups and links are those of comparing every pair with every deploy', async () => {
  const property = fc.asyncProperty(
    fc.array(someLabelled, { maxLength: 30 }),
    fc.array(someDeploy, { maxLength: 40 }),
    fc.constantFrom(shop, []),
    async (plans, deploys, calls) => {
      const all = plans.map((plan, i) => {
        return timed({ ...plan, id: String(i).padStart(2, '0'), until: plan.from + plan.lasts })
      })
      const early = { graph: new CallGraph(calls), deploys: deploys.map(deployOf) }
      const around = ({ startedNs }: TimedAnomaly) => (startedNs < 240n * minuteNs ? early : unknown)
      const links = new Map(all.map(({ anomaly }) => [anomaly.id, new Set<MemberLink>()]))
      const groupOf = new Map(all.map((one) => [one, new Set([one])]))
      const ordered = all.toSorted(byStart)
      for (const [i, later] of ordered.entries()) {
        for (const earlier of ordered.slice(0, i).reverse()) {
          const own = plainLinksOf(earlier, later, around(earlier))
          for (const link of own) for (const one of [later, earlier]) links.get(one.anomaly.id)?.add(link)
          if (own.length === 0) continue
          const joined = new Set([...(groupOf.get(earlier) ?? []), ...(groupOf.get(later) ?? [])])
          for (const one of joined) groupOf.set(one, joined)
        }
      }
      const expected = [...new Set(ordered.map((one) => groupOf.get(one) ?? new Set()))].map((group) => {
        return ordered.filter((one) => group.has(one)).map(({ anomaly: { id } }) => id)
      })
      const found = await groupAnomalies(all, around)
      assert.deepEqual(
        found.map(({ members }) => members.map(({ anomaly }) => anomaly.id)),
        expected,
      )
      const because = found.flatMap(({ because, members }) =>
        members.map(({ anomaly }) => [anomaly.id, [...(because.get(anomaly.id) ?? [])]] as const),
      )
      for (const [id, own] of because) assert.deepEqual(own, [...(links.get(id) ?? [])])
    },
  )
  await fc.assert(property, { numRuns: 300 })
})

test('other work of the event loop runs while a thousand anomalies are grouped by hundreds of deploys', async () => {
  const given = Array.from({ length: 1000 }, (_, i) =>
    timed({
      id: String(i).padStart(4, '0'),
      from: 60,
      until: 600,
      service: i % 2 === 0 ? 'search' : 'ledger',
    }),
  )
  // Each was deployed just before, more than a quarter of an hour apart from the other.
  const deploys = Array.from({ length: 398 }, (_, i) =>
    deployOf(i % 2 === 0 ? { service: 'search', at: 1 } : { service: 'ledger', at: 55 }),
  )
  const around = { ...inShop, deploys }
  const { result: groups, turns } = await withTurns(() => groupAnomalies(given, () => around))
  assert.equal(groups.length, 2)
  assert(turns > 3, `${turns} turns`)
})

test('the burst is the quarter of an hour in which most began, the first of several', () => {
  const property = fc.property(fc.array(fc.integer({ min: 0, max: 90 }), { minLength: 1 }), (starts) => {
    const members = starts.toSorted((a, b) => a - b).map((from, i) => timed({ id: `${i}`, from, until: 200 }))
    const sizeAt = ({ startedNs }: TimedAnomaly) =>
      members.filter((one) => one.startedNs >= startedNs && one.startedNs <= startedNs + 15n * minuteNs)
        .length
    const most = Math.max(...members.map(sizeAt))
    assert.equal(burstOf(members), members.find((one) => sizeAt(one) === most)?.startedNs)
  })
  fc.assert(property)
})
