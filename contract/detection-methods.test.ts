// What a client may send as parameters of each method: defaults, bounds, rules between parameters, and that the
// served schema explains every one of them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { comparesPeers, describeMethods, methodKeys, methodParams } from './detection-methods.ts'

const issuesOf = (result: { error?: { issues: { path: PropertyKey[]; message: string }[] } | undefined }) =>
  (result.error?.issues ?? []).map((issue) => [issue.path.join('.'), issue.message])

test('defaults fill what is not given', () => {
  const params = methodParams.robust_band.parse({ k: 3 })
  assert.deepEqual(
    {
      k: params.k,
      window: params.window_points,
      n: params.violate_n,
      m: params.window_m,
      budget: params.alarm_budget_per_week,
    },
    { k: 3, window: 288, n: 2, m: 3, budget: 1 },
  )
})

test('a threshold needs a limit, and its limits in order', () => {
  assert.deepEqual(issuesOf(methodParams.threshold.safeParse({})), [['upper', 'Give upper, lower or both']])
  assert.deepEqual(issuesOf(methodParams.threshold.safeParse({ lower: 2, upper: 1 })), [
    ['lower', 'lower must not exceed upper'],
  ])
  assert.ok(methodParams.threshold.safeParse({ lower: 1, upper: 1 }).success)
  assert.ok(!methodParams.threshold.safeParse({ upper: Number.POSITIVE_INFINITY }).success)
})

test('n may not exceed m in any method', () => {
  const params = { upper: 1, violate_n: 4, window_m: 3 }
  assert.deepEqual(issuesOf(methodParams.threshold.safeParse(params)), [
    ['violate_n', 'violate_n must not exceed window_m'],
  ])
  assert.ok(!methodParams.robust_band.safeParse({ violate_n: 4 }).success)
})

test('a misspelt or foreign parameter is refused', () => {
  assert.ok(!methodParams.robust_band.safeParse({ window: 288 }).success)
  assert.ok(!methodParams.threshold.safeParse({ upper: 1, alarm_budget_per_week: 1 }).success)
})

test('bounds are kept', () => {
  for (const params of [
    { k: 0.9 },
    { k: 21 },
    { window_points: 15 },
    { window_points: 20_001 },
    { clear_n: 0 },
  ]) {
    assert.ok(!methodParams.robust_band.safeParse(params).success, JSON.stringify(params))
  }
})

test('every method and every parameter is described in the served schema', () => {
  const catalogue = describeMethods()
  assert.deepEqual(
    catalogue.map((method) => method.method_key),
    Object.keys(methodParams),
  )
  assert.deepEqual([...methodKeys], Object.keys(methodParams))
  for (const method of catalogue) {
    assert.ok(method.description.length > 20)
    const { properties, additionalProperties, required } = method.params_schema
    assert.equal(additionalProperties, false)
    assert.equal(required, undefined, 'defaults make every parameter optional')
    for (const [name, schema] of Object.entries(properties ?? {})) {
      assert.ok(typeof schema.description === 'string', `${method.method_key}.${name}`)
    }
  }
})

test('the catalogue says which methods compare the series of a group', () => {
  const peerMethods = describeMethods().filter((method) => method.needs_group_by)
  assert.deepEqual(
    peerMethods.map((method) => method.method_key),
    ['peer_outlier'],
  )
  assert.deepEqual(methodKeys.filter(comparesPeers), ['peer_outlier'])
})
