// The edge that a view learns from its own scores; samples come from seeds.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LearntEdge } from './learnt-edge.ts'
import { seededUniform } from './seeded-random.ts'

const perWeek = 2016
const options = { stepMinutes: 5, budgetPerWeek: 1, base: 0, perDigit: 0.3 }

/** Learns exponential scores of a scale; an `incident` adds a score of 50 that many times a week. */
function learn(edge: LearntEdge, weeks: number, scale: number, incidents = 0): void {
  const uniform = seededUniform(7)
  for (let i = 0; i < weeks * perWeek; i++) {
    const isIncident = incidents > 0 && i % Math.floor(perWeek / incidents) === 0
    const score = isIncident ? 50 : -scale * Math.log10(1 - uniform())
    if (score > edge.edge) {
      edge.learn(0)
      edge.spend(score / edge.edge)
    } else edge.learn(score)
  }
}

test('the edge is where scores of an exponential tail reach the budget', () => {
  for (const scale of [0.5, 1, 2]) {
    const edge = new LearntEdge(options)
    learn(edge, 8, scale)
    const wanted = scale * Math.log10(perWeek)
    assert.ok(Math.abs(edge.edge - wanted) < 0.25 * wanted, `${edge.edge} for ${wanted}`)
  }
})

test('incidents that are plainly outside do not move the edge, up to five a week', () => {
  const edgeWith = (incidents: number) => {
    const edge = new LearntEdge(options)
    learn(edge, 6, 1, incidents)
    return edge.edge
  }
  assert.ok(edgeWith(4) < 1.1 * edgeWith(0), `${edgeWith(4)}, ${edgeWith(0)}`)
  assert.ok(edgeWith(40) > 1.15 * edgeWith(0), `${edgeWith(40)}, ${edgeWith(0)}`)
})

test('the edge of a calm series stays at the floor, which is higher for rarer alarms', () => {
  const floorOf = (budgetPerWeek: number) => {
    const edge = new LearntEdge({ ...options, budgetPerWeek })
    for (let i = 0; i < 2 * perWeek; i++) edge.learn(0)
    return edge.edge
  }
  assert.ok(floorOf(0.1) > floorOf(1) && floorOf(1) > floorOf(10))
})

test('alarms near the edge beyond the budget move it out', () => {
  const edge = new LearntEdge(options)
  learn(edge, 4, 1)
  const before = edge.edge
  for (let i = 0; i < 1000; i++) edge.spend(1.1)
  assert.ok(edge.edge > before + 0.5, `${edge.edge}, ${before}`)
})
