// The parameters of each method as clients send them: defaults, bounds, rules between parameters, and a
// description of each in the served schema.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { comparesPeers, describeMethods, methodKeys, methodParams } from './methods.ts'

const issuesOf = (result: { error?: { issues: { path: PropertyKey[]; message: string }[] } | undefined }) =>
  (result.error?.issues ?? []).map((issue) => [issue.path.join('.'), issue.message])

test('defaults replace absent parameters', () => {
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

test('a threshold needs a limit, and lower must not exceed upper', () => {
  assert.deepEqual(issuesOf(methodParams.threshold.safeParse({})), [['upper', 'Give upper, lower or both']])
  assert.deepEqual(issuesOf(methodParams.threshold.safeParse({ lower: 2, upper: 1 })), [
    ['lower', 'lower must not exceed upper'],
  ])
  assert.ok(methodParams.threshold.safeParse({ lower: 1, upper: 1 }).success)
  assert.ok(!methodParams.threshold.safeParse({ upper: Number.POSITIVE_INFINITY }).success)
})

test('violate_n must not exceed window_m in any method', () => {
  const params = { upper: 1, violate_n: 4, window_m: 3 }
  assert.deepEqual(issuesOf(methodParams.threshold.safeParse(params)), [
    ['violate_n', 'violate_n must not exceed window_m'],
  ])
  assert.ok(!methodParams.robust_band.safeParse({ violate_n: 4 }).success)
})

test('a misspelt parameter, or one of another method, is refused', () => {
  assert.ok(!methodParams.robust_band.safeParse({ window: 288 }).success)
  assert.ok(!methodParams.threshold.safeParse({ upper: 1, alarm_budget_per_week: 1 }).success)
})

test('holidays are days of one year or of every year, and an invalid one is refused with its location and a correction', () => {
  const read = (holidays: unknown) => methodParams.seasonal_band.safeParse({ holidays })
  assert.deepEqual(methodParams.seasonal_band.parse({}).holidays, [])
  const days = ['2026-12-25', '2028-02-29', '12-25', '02-29', '0001-01-01']
  assert.deepEqual(read(days).data?.holidays, days)
  const shape = 'Input should be a day without a time: "2026-12-25", or "12-25" for every year'
  for (const text of [
    '25.12.2026',
    '2026-12-25T00:00:00Z',
    '--12-25',
    '2026-W52',
    '12/25',
    '',
    ' 12-25',
    '12-25\n',
  ]) {
    assert.deepEqual(issuesOf(read(['12-25', text])), [['holidays.1', shape]], text)
  }
  for (const text of ['2026-02-29', '2026-02-30', '02-30', '13-01', '2026-00-10', '2026-04-31', '12-00']) {
    const message = `There is no ${text} in the calendar; give month and day as in "2026-12-25"`
    assert.deepEqual(issuesOf(read([text])), [['holidays.0', message]])
  }
  assert.deepEqual(
    issuesOf(read(['x', '12-25', 'y'])).map(([path]) => path),
    ['holidays.0', 'holidays.2'],
  )
  assert.ok(read(Array(366).fill('12-25')).success)
  for (const other of [Array(367).fill('12-25'), '12-25', [20261225], [null], {}])
    assert.ok(!read(other).success)
})

test('parameters outside their bounds are refused', () => {
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
