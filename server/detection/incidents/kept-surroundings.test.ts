// Which surroundings stay in memory: their number and their bytes are limited, and organisations that have
// little lose nothing to one that has much.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KnownDeploy } from '../../deploys/deploys.ts'
import { CallGraph } from './call-graph.ts'
import { KeptSurroundings, type KnownSurroundings } from './kept-surroundings.ts'

/** Takes a little more than this many bytes. */
function surroundings(bytes: number): KnownSurroundings {
  const deploy: KnownDeploy = {
    ...{ service: 'a', environment: null, previous_version: '1', told_by: 'version', atNs: 0n },
    version: 'v'.repeat(bytes / 2),
  }
  return { graph: new CallGraph([]), deploys: [deploy], clues: null }
}

const small = { visibility: 0, found: surroundings(100) }
const large = { visibility: 0, found: surroundings(4000) }

test('where there is no room, the organisation that has most loses its oldest, whoever adds', () => {
  const kept = new KeptSurroundings(10_000)
  kept.keep('calm', '1', small)
  for (const key of ['1', '2', '3']) kept.keep('flood', key, large)
  const found = () => ['1', '2', '3', '4'].filter((key) => kept.find('flood', key, 0) !== undefined)
  assert.deepEqual(found(), ['2', '3'])
  assert.equal(kept.find('calm', '1', 0), small.found)
  for (let key = 2; key <= 7; key++) kept.keep('calm', `${key}`, small)
  assert.deepEqual(found(), ['3'])
  assert.equal(kept.find('calm', '7', 0), small.found)
  kept.keep('flood', '4', { visibility: 0, found: surroundings(20_000) })
  assert.deepEqual(found(), [], 'larger than all room')
  assert.equal(kept.find('calm', '1', 0), small.found)
})

test('a graph and clues count as well as deploys', () => {
  const kept = new KeptSurroundings(10_000)
  const clue = { kind: 'failures', service: 'a', metricKey: 'm', weight: 1 } as const
  const empty = { graph: new CallGraph([]), deploys: [], clues: null }
  const calls = Array.from({ length: 20 }, (_, i) => [`caller${i}`, `callee${i}`] as const)
  for (const found of [
    { ...empty, clues: [{ ...clue, text: 't'.repeat(5000) }] },
    { ...empty, graph: new CallGraph(calls) },
  ]) {
    kept.keep('acme', '1', { visibility: 0, found })
    assert.equal(kept.find('acme', '1', 0), undefined)
  }
})

test('thirty are kept of an organisation, and of twenty organisations', () => {
  const kept = new KeptSurroundings()
  for (let key = 0; key <= 30; key++) kept.keep('acme', `${key}`, small)
  assert.equal(kept.find('acme', '0', 0), undefined)
  assert.equal(kept.find('acme', '1', 0), small.found)
  for (let other = 0; other < 19; other++) kept.keep(`other${other}`, '1', small)
  assert.equal(kept.find('acme', '1', 0), small.found)
  kept.keep('last', '1', small)
  assert.equal(kept.find('acme', '1', 0), undefined)
  assert.equal(kept.find('other0', '1', 0), small.found)
})

test('what was read with another visibility, or is forgotten, is not found, and its room is free', () => {
  const kept = new KeptSurroundings(10_000)
  kept.keep('acme', '1', large)
  assert.equal(kept.find('acme', '1', 1), undefined)
  kept.keep('acme', '1', { ...large, visibility: 1 })
  assert.equal(kept.find('acme', '1', 1), large.found)
  kept.keep('globex', '1', large)
  kept.forget('acme')
  assert.equal(kept.find('acme', '1', 1), undefined)
  kept.keep('globex', '2', large)
  assert.deepEqual(
    ['1', '2'].map((key) => kept.find('globex', key, 0)),
    [large.found, large.found],
  )
})
