// Which deploys around an incident are looked at.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KnownDeploy } from '../../deploys/deploys.ts'
import { nearestDeploys } from './nearest-deploys.ts'

function deploy(service: string, second: number): KnownDeploy {
  return {
    ...{ service, environment: null, version: '2', previous_version: '1', told_by: 'version' },
    atNs: BigInt(second) * 1_000_000_000n,
  }
}

test('all deploys are looked at where a service has fifty and an organisation has two thousand', () => {
  const all = Array.from({ length: 2000 }, (_, i) => deploy(`s${i % 40}`, i))
  assert.deepEqual(nearestDeploys(all, 0n), all)
})

test('of a service with more, the fifty nearest are looked at, and all of another one', () => {
  const restless = Array.from({ length: 200 }, (_, i) => deploy('restless', i))
  const calm = [deploy('calm', 10_000), deploy('calm', 20_000)]
  assert.deepEqual(nearestDeploys([...restless, ...calm], 100_000_000_000n), [
    ...restless.slice(75, 125),
    ...calm,
  ])
})

test('of more than two thousand of all services, the nearest are looked at', () => {
  const all = Array.from({ length: 2500 }, (_, i) => deploy(`s${i}`, i))
  assert.deepEqual(nearestDeploys(all, 0n), all.slice(0, 2000))
})
