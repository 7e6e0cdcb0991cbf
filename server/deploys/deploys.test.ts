// What counts as a deploy: a version that begins, once however many instances change one after the other, and
// in both directions; never versions that run side by side, a pause of everything, or sparse telemetry.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DeployEvent, deploysOf, type KnownDeploy, type SeenVersion, toDeploy } from './deploys.ts'

const startMs = Date.UTC(2026, 10, 22, 12)
const atNs = (minute: number) => BigInt(startMs + minute * 60_000) * 1_000_000n

/** Seen each minute of each `[from, until]`. */
function dense(version: string, ...stretches: readonly (readonly [number, number])[]): SeenVersion {
  return {
    ...{ service: 'checkout', environment: '', version },
    buckets: stretches.reduce((sum, [from, until]) => sum + until - from + 1, 0),
    stretches: stretches.map(([from, until]) => ({ startNs: atNs(from), endNs: atNs(until) })),
  }
}

/** Seen once at each of these minutes. */
const sparse = (version: string, ...minutes: readonly number[]): SeenVersion =>
  dense(version, ...minutes.map((minute) => [minute, minute] as const))

const event = (minute: number, more: Partial<DeployEvent> = {}): DeployEvent => ({
  ...{ service: 'checkout', environment: '', version: '' },
  atNs: atNs(minute),
  ...more,
})

/** `1.0 > 1.1 at 60`, in order. */
const found = (seen: readonly SeenVersion[], events: readonly DeployEvent[] = []) =>
  deploysOf(seen, events).map(words)

function words({ atNs: ns, environment, previous_version, version }: KnownDeploy): string {
  const minute = Number((ns - atNs(0)) / 60_000_000_000n)
  return `${previous_version} > ${version} at ${minute}${environment === null ? '' : ` in ${environment}`}`
}

test('a version that begins where another ran is a deploy, at its first sighting', () => {
  const [deploy] = deploysOf([dense('2.3.0', [0, 59]), dense('2.3.1', [60, 120])], [])
  assert.ok(deploy)
  assert.deepEqual(toDeploy(deploy), {
    service: 'checkout',
    environment: null,
    version: '2.3.1',
    previous_version: '2.3.0',
    at: '2026-11-22T13:00:00Z',
    told_by: 'version',
  })
})

test('a service that is new, or runs one version, has no deploy', () => {
  assert.deepEqual(found([dense('1.0', [0, 500])]), [])
  assert.deepEqual(found([]), [])
})

test('a rolling deploy, in which both versions run for a while, is one deploy', () => {
  assert.deepEqual(found([dense('1.0', [0, 90]), dense('1.1', [60, 200])]), ['1.0 > 1.1 at 60'])
})

test('going back to an older version is a deploy too, after a pause of it or without one', () => {
  const later = dense('1.0', [0, 60], [200, 400])
  assert.deepEqual(found([later, dense('1.1', [60, 200])]), ['1.0 > 1.1 at 60', '1.1 > 1.0 at 200'])
  const soon = dense('1.0', [0, 62], [70, 400])
  assert.deepEqual(found([soon, dense('1.1', [60, 72])]), ['1.0 > 1.1 at 60', '1.1 > 1.0 at 70'])
  const always = dense('1.0', [0, 400])
  assert.deepEqual(found([always, dense('1.1', [60, 90])]), ['1.0 > 1.1 at 60', '1.1 > 1.0 at 90'])
})

test('each of several deploys in a row is found, with the version that ran just before', () => {
  const seen = [dense('1.0', [0, 70]), dense('1.1', [60, 130]), dense('1.2', [120, 300])]
  assert.deepEqual(found(seen), ['1.0 > 1.1 at 60', '1.1 > 1.2 at 120'])
})

test('versions that run side by side from the start are no deploys', () => {
  assert.deepEqual(found([dense('eu', [0, 500]), dense('us', [2, 500])]), [])
  assert.deepEqual(found([dense('eu', [0, 500]), dense('us', [2, 100])]), [])
})

test('a pause of the whole service, such as a night, is not a deploy', () => {
  assert.deepEqual(found([dense('1.0', [0, 100], [700, 800])]), [])
  assert.deepEqual(found([dense('1.0', [0, 100]), dense('1.1', [700, 800])]), ['1.0 > 1.1 at 700'])
})

test('two versions that are seen in turns, because the service sends little, are not deployed in turns', () => {
  const turns = [sparse('a', 0, 60, 120, 180, 240), sparse('b', 30, 90, 150, 210, 270)]
  assert.deepEqual(found(turns), [])
  const canary = Array.from({ length: 40 }, (_, i) => i * 25 + ((i * 7) % 11))
  assert.deepEqual(found([dense('main', [0, 1000]), sparse('canary', ...canary)]), [])
})

test('a version that is seen once while another continues is not a deploy, and one that was just deployed is', () => {
  assert.deepEqual(found([dense('1.0', [0, 300]), sparse('stray', 100)]), [])
  assert.deepEqual(found([dense('1.0', [0, 300]), sparse('1.1', 298)]), ['1.0 > 1.1 at 298'])
  assert.deepEqual(found([dense('1.0', [0, 300]), sparse('1.1', 400)]), ['1.0 > 1.1 at 400'])
})

test('environments and services are separate', () => {
  const staging = { ...dense('1.1', [30, 300]), environment: 'staging' }
  const stagingBefore = { ...dense('1.0', [0, 30]), environment: 'staging' }
  const other = { ...dense('9.9', [40, 300]), service: 'cart' }
  const seen = [dense('1.0', [0, 100]), dense('1.1', [100, 300]), staging, stagingBefore, other]
  assert.deepEqual(found(seen), ['1.0 > 1.1 at 30 in staging', '1.0 > 1.1 at 100'])
})

test('an event and the version it is about are one deploy, at the earlier of both', () => {
  const seen = [dense('1.0', [0, 65]), dense('1.1', [60, 300])]
  assert.deepEqual(found(seen, [event(55, { version: '1.1' }), event(62, { version: '1.1' })]), [
    '1.0 > 1.1 at 55',
  ])
  assert.deepEqual(found(seen, [event(70)]), ['1.0 > 1.1 at 60'])
  assert.equal(deploysOf(seen, [event(70)])[0]?.told_by, 'event')
})

test('an event without another version, such as of a configuration, is a deploy of its own', () => {
  assert.deepEqual(found([dense('1.0', [0, 300])], [event(100), event(110)]), ['1.0 > 1.0 at 100'])
  assert.deepEqual(found([], [event(100, { version: '7' })]), ['null > 7 at 100'])
  assert.deepEqual(found([dense('1.0', [0, 300])], [event(100, { service: 'cart' })]), ['null > null at 100'])
})

test('the order of the rows does not matter', () => {
  const seen = [dense('1.0', [0, 70]), dense('1.1', [60, 130]), dense('1.2', [120, 300])]
  assert.deepEqual(found(seen.toReversed()), found(seen))
})
