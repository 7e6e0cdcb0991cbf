// The model of the demo shop, tested by its numbers: it is the same at every run, it has its seasons, and
// every incident differs clearly from the same hours of other days.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ServiceName } from './call-graph.ts'
import { serviceNames } from './call-graph.ts'
import type { IncidentKey, ShopMinute } from './shop.ts'
import { openShop } from './shop.ts'

// Wednesday 2025-11-19, 03:17 UTC.
const anchorNs = 1_763_522_220_000_000_000n
const shop = openShop({ seed: 20, anchorNs })
const day = 1440

const serviceAt = (moment: ShopMinute, name: ServiceName) => {
  const state = moment.services[serviceNames.indexOf(name)]
  assert.ok(state)
  return state
}

const incidentOf = (key: IncidentKey) => {
  const incident = shop.incidents.find((each) => each.key === key)
  assert.ok(incident)
  return incident
}

const requestsIn = (fromMinute: number, minutes: number): number => {
  let sum = 0
  for (let minute = fromMinute; minute < fromMinute + minutes; minute++) {
    sum += shop.at(minute).arrivals.reduce((total, count) => total + count, 0)
  }
  return sum
}

const failuresIn = (name: ServiceName, fromMinute: number, minutes: number): number => {
  const service = serviceNames.indexOf(name)
  let sum = 0
  for (let minute = fromMinute; minute < fromMinute + minutes; minute++) {
    sum += shop.at(minute).ownFailures[service]?.reduce((total, count) => total + count, 0) ?? 0
  }
  return sum
}

test('a minute is the same at any time and in any order of calls', () => {
  fc.assert(
    fc.property(fc.integer(), fc.integer({ min: 0, max: 14 * day + 300 }), (seed, offset) => {
      const first = openShop({ seed, anchorNs })
      const minute = first.openMinute + offset
      const again = openShop({ seed, anchorNs })
      again.at(again.anchorMinute)
      assert.deepEqual(again.at(minute), first.at(minute))
    }),
    { numRuns: 50 },
  )
})

test('another seed gives another shop', () => {
  const other = openShop({ seed: 21, anchorNs })
  assert.notDeepEqual(other.at(shop.anchorMinute).arrivals, shop.at(shop.anchorMinute).arrivals)
})

test('a minute before the opening of the shop is refused', () => {
  assert.equal(shop.openMinute, shop.anchorMinute - 14 * day)
  assert.throws(() => shop.at(shop.openMinute - 1), RangeError)
})

test("the demo always starts in the shop's afternoon, well above its nightly trough", () => {
  for (let hour = 0; hour < 24; hour++) {
    const started = openShop({ seed: 1, anchorNs: anchorNs + BigInt(hour) * 3_600_000_000_000n })
    const now = started.expectedRate('browse', started.anchorMinute)
    const nightly = started.expectedRate('browse', started.anchorMinute - 12 * 60)
    assert.ok(now > 3.5 * nightly, `at hour ${hour}: ${now} against ${nightly}`)
  }
})

test('every day has its trough and its peak', () => {
  for (let back = 14; back >= 1; back--) {
    const start = shop.anchorMinute - back * day
    const hours = Array.from({ length: 24 }, (_, hour) => requestsIn(start + hour * 60, 60))
    assert.ok(Math.max(...hours) > 5 * Math.min(...hours), `day ${back} before: ${hours}`)
  }
})

test('a day is more similar to the same day a week earlier than to the days beside it', () => {
  const days = Array.from({ length: 14 }, (_, index) => requestsIn(shop.openMinute + index * day, day))
  const apart = (distance: number): number => {
    const ratios = days.slice(distance).map((sum, index) => Math.abs(Math.log(sum / (days[index] ?? sum))))
    return ratios.reduce((total, ratio) => total + ratio, 0) / ratios.length
  }
  assert.ok(apart(7) < 0.5 * apart(3), `${apart(7)} against ${apart(3)}`)
})

test('three incidents are in the past, one of them hours ago, and one happens soon', () => {
  const ends = shop.incidents.map(({ endMinute }) => endMinute - shop.anchorMinute)
  assert.equal(ends.filter((end) => end <= 0).length, 3)
  assert.ok(ends.some((end) => end <= 0 && end > -4 * 60))
  const coming = incidentOf('search_error_burst').startMinute - shop.anchorMinute
  assert.ok(coming >= 2 && coming <= 10)
})

test('a shorter history leaves out the incidents before its start', () => {
  const short = openShop({ seed: 20, anchorNs, historyDays: 1 })
  assert.deepEqual(
    short.incidents.map(({ key }) => key),
    ['payments_slow_and_failing', 'search_error_burst'],
  )
})

test('payments is slow and fails during its incident and only then', () => {
  const { startMinute, endMinute } = incidentOf('payments_slow_and_failing')
  const minutes = endMinute - startMinute
  const during = failuresIn('payments', startMinute, minutes)
  const weekBefore = failuresIn('payments', startMinute - 7 * day, minutes)
  assert.ok(during > 300 && weekBefore < 20, `${during} against ${weekBefore}`)
  const latency = (minute: number) => serviceAt(shop.at(minute), 'payments').latencyFactor
  assert.ok(latency(startMinute) > 5 * latency(startMinute - 1))
  assert.ok(latency(endMinute - 1) > 5 * latency(endMinute))
})

test('traffic falls to about a quarter during the traffic drop', () => {
  const { startMinute, endMinute } = incidentOf('storefront_traffic_drop')
  const minutes = endMinute - startMinute
  const during = requestsIn(startMinute, minutes)
  const weekBefore = requestsIn(startMinute - 7 * day, minutes)
  assert.ok(during < 0.35 * weekBefore && during > 0.15 * weekBefore, `${during} against ${weekBefore}`)
})

test('the leak fills the memory of inventory linearly and ends with a restart of the same version', () => {
  const { startMinute, endMinute } = incidentOf('inventory_memory_leak')
  const killedMinute = endMinute - 5
  const state = (minute: number) => serviceAt(shop.at(minute), 'inventory')
  assert.ok(state(startMinute - 1).memory < 0.5)
  assert.ok(state(startMinute + 15).memory > 0.6)
  assert.ok(state(killedMinute - 1).memory > 0.93)
  assert.equal(state(killedMinute).startedMinute, killedMinute)
  assert.notEqual(state(killedMinute - 1).startedMinute, killedMinute)
  assert.equal(state(killedMinute).version, state(killedMinute - 1).version)
  assert.ok(state(killedMinute).memory < 0.5)
  assert.ok(
    failuresIn('inventory', killedMinute, 5) >
      (30 * (failuresIn('inventory', startMinute - 60, 60) + 1)) / 12,
  )
})

test('three of five searches fail in the coming burst', () => {
  const { startMinute, endMinute } = incidentOf('search_error_burst')
  const burst = failuresIn('search', startMinute, endMinute - startMinute)
  assert.ok(burst > 50 * (failuresIn('search', startMinute - 60, 60) / 4 + 1))
})

test('each service is deployed a few times: the version rises, a new process starts, responses are slower for some minutes', () => {
  for (const name of serviceNames) {
    const deploys = shop
      .startsOf(name, shop.openMinute + 1, shop.anchorMinute)
      .filter((minute) => minute !== incidentOf('inventory_memory_leak').endMinute - 5)
    assert.ok(deploys.length >= 2 && deploys.length <= 5, `${name}: ${deploys.length} deploys`)
    for (const minute of deploys) {
      const [before, after] = [serviceAt(shop.at(minute - 1), name), serviceAt(shop.at(minute), name)]
      assert.notEqual(after.version, before.version)
      assert.equal(after.startedMinute, minute)
      assert.ok(after.latencyFactor > 1.3 * before.latencyFactor)
    }
  }
})
