// Rules of definitions and patches, without a store: what is accepted, what is refused and where, and which
// changes an ETag and a system detector forbid.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  builtInMetrics,
  CreateDetector,
  MetricKey,
  PatchDetector,
} from '../../../contract/detection/detectors.ts'
import type { ValidationProblem } from '../../../contract/errors.ts'
import { readPart } from '../../core/input/parsed.ts'
import { eventSeries } from '../../series/event-series.ts'
import {
  changedFields,
  type DetectorDefinition,
  type Draft,
  etagOf,
  ifMatchAllows,
  mergePatch,
  methodChoiceOf,
  readCreation,
  readDraft,
  readPatch,
  refusedOnSystem,
  type StoredDetector,
} from './detector.ts'
import { systemDetectors } from './system-detectors.ts'

const draft = {
  name: 'Queue',
  metric_key: 'queue.length',
  method_key: 'threshold',
  params: { upper: 100 },
  scope: { service: 'checkout', attributes: { region: 'eu' } },
  window_minutes: 60,
  schedule_minutes: 1,
  enabled: true,
}

function definitionOf(given: Draft): DetectorDefinition {
  const read = readDraft(given)
  assert('value' in read, JSON.stringify(read))
  return read.value
}

function problemsOf(given: Draft): readonly ValidationProblem[] {
  const read = readDraft(given)
  return 'problems' in read ? read.problems : []
}

function stored(definition: DetectorDefinition): StoredDetector {
  return {
    id: 'det_1',
    tenantId: 'acme',
    definition,
    isSystem: false,
    revision: 1,
    tuningRevision: 0,
    lastRunAtMs: null,
    lastStatus: null,
    lastNote: null,
    nextRunAtMs: 0,
    createdAtMs: 0,
  }
}

/** Returns the definition after a patch that the schema of the body accepts. */
function patched(definition: DetectorDefinition, patch: PatchDetector, isMerge: boolean) {
  return readPatch(stored(definition), { body: PatchDetector.parse(patch), raw: patch }, isMerge)
}

/** Problems that the rule reports beside those of the schema. */
function patchProblems(definition: DetectorDefinition, raw: unknown, isMerge: boolean) {
  const { value: body } = readPart('body', PatchDetector, raw)
  const read = readPatch(stored(definition), { body, raw }, isMerge)
  return 'problems' in read ? read.problems : []
}

function createProblems(raw: unknown) {
  const { value: body } = readPart('body', CreateDetector, raw)
  const read = readCreation({ body, raw })
  return 'problems' in read ? read.problems : []
}

const locations = (problems: readonly ValidationProblem[]) =>
  problems.map(({ loc, type }) => `${loc.join('.')} ${type}`)

const before = definitionOf(draft)

test('a definition is stored with the defaults of its method filled in', () => {
  assert.equal(before.params.upper, 100)
  assert.equal(before.params.violate_n, 2)
  assert.deepEqual(methodChoiceOf(before)?.params, before.params)
})

test('all problems of a definition are reported at once, with their locations', () => {
  const wrong = {
    ...draft,
    metric_key: 'spans.error_rate',
    params: { upper: 'high', lowr: 1 },
    scope: { team: 'a' },
    window_minutes: 0,
    schedule_minutes: 10_081,
  }
  assert.deepEqual(locations(problemsOf(wrong)).sort(), [
    'body.metric_key value_error',
    'body.params.lowr extra_forbidden',
    'body.params.upper float_type',
    'body.schedule_minutes less_than_equal',
    'body.scope.team extra_forbidden',
    'body.window_minutes greater_than_equal',
  ])
})

/** Attributes whose JSON has that many bytes, most of them in characters of three bytes. */
function attributesOf(bytes: number) {
  const long = { a: '漢'.repeat(600), b: '漢'.repeat(600), c: '' }
  return { ...long, c: 'x'.repeat(bytes - Buffer.byteLength(JSON.stringify(long))) }
}

test('the attributes of a scope have at most 4,096 bytes as JSON', () => {
  const scoped = (bytes: number) => problemsOf({ ...draft, scope: { attributes: attributesOf(bytes) } })
  assert.deepEqual(scoped(4096), [])
  const [problem, ...others] = scoped(4097)
  assert.deepEqual(locations([problem, ...others].filter((one) => one !== undefined)), [
    'body.scope.attributes bytes_too_long',
  ])
  assert.match(problem?.msg ?? '', /^Give attributes of at most 4096 bytes/)
  assert.deepEqual(problem?.ctx, { max_length: 4096 })
})

test('a longer scope of before the limit stays in patches that leave it as it is, and is refused in others', () => {
  const attributes = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`k${i}`, '漢'.repeat(1000)]))
  const old = { ...before, scope: { service: 'checkout', attributes } }
  const renamed = patched(old, { name: 'Renamed' }, false)
  assert('value' in renamed)
  assert.deepEqual(renamed.value.after, { ...old, name: 'Renamed' })
  assert('value' in patched(old, { scope: old.scope, enabled: false }, false))
  assert('value' in patched(old, { scope: {} }, true))
  const longer = ['body.scope.attributes bytes_too_long']
  assert.deepEqual(locations(patchProblems(old, { scope: { service: 'cart' } }, true)), longer)
  assert.deepEqual(locations(patchProblems(old, { scope: { ...old.scope, service: 'cart' } }, false)), longer)
  assert.deepEqual(patchProblems(old, { scope: { service: 'cart' } }, false), [])
})

test('window and schedule accept their bounds and nothing outside them', () => {
  const fits = (window_minutes: unknown, schedule_minutes: unknown) =>
    problemsOf({ ...draft, window_minutes, schedule_minutes }).length === 0
  assert(fits(1, 1))
  assert(fits(129_600, 10_080))
  for (const bad of [0, -1, 129_601, 1.5, '60', null, true, 1e30]) assert(!fits(bad, 1), `window ${bad}`)
  for (const bad of [0, 10_081, 2.5, '5', null]) assert(!fits(60, bad), `schedule ${bad}`)
})

test('a value that is not an integer is reported as int_type', () => {
  assert.deepEqual(locations(problemsOf({ ...draft, window_minutes: '60', schedule_minutes: 1.5 })), [
    'body.window_minutes int_type',
    'body.schedule_minutes int_type',
  ])
})

test('metric keys are names of OpenTelemetry and Prometheus, or built in', () => {
  for (const good of ['a', 'http.server.request.duration', '_up', 'job:rate:5m', 'a/b-c.D_9']) {
    assert(MetricKey.safeParse(good).success, good)
  }
  for (const bad of ['', '9lives', 'a b', 'ü', 'a'.repeat(256), 'spans.rat', 'logs.errors', "x';drop"]) {
    assert(!MetricKey.safeParse(bad).success, bad)
  }
})

test('the built-in metrics are those that can be read from telemetry', () => {
  assert.deepEqual(
    builtInMetrics.map((metric) => metric.metric_key).sort(),
    eventSeries.map(({ key }) => key).sort(),
  )
  for (const { metric_key } of builtInMetrics) assert(MetricKey.safeParse(metric_key).success, metric_key)
})

test('a plain patch replaces params and scope whole', () => {
  const read = patched(before, { params: { lower: 1 }, scope: { group_by: 'host' } }, false)
  assert('value' in read)
  assert.equal(read.value.after.params.upper, undefined)
  assert.equal(read.value.after.params.lower, 1)
  assert.deepEqual(read.value.after.scope, { group_by: 'host' })
})

test('a merge patch merges params and scope and removes what is null', () => {
  const fields = { params: { lower: 1 }, scope: { service: null, attributes: { zone: 'b' } } }
  const read = patched(before, fields, true)
  assert('value' in read)
  assert.equal(read.value.after.params.upper, 100)
  assert.equal(read.value.after.params.lower, 1)
  assert.deepEqual(read.value.after.scope, { attributes: { region: 'eu', zone: 'b' } })
})

test('the result of a merge is checked, not the patch', () => {
  const read = patched(before, { params: { upper: null } }, true)
  assert('problems' in read)
  assert.deepEqual(locations(read.problems), ['body.params.upper value_error'])
})

test('parameters of another method are refused one by one', () => {
  assert.deepEqual(
    locations(patchProblems(before, { params: { k: 4, upper: 1, window_points: 20 } }, false)),
    ['body.params.k extra_forbidden', 'body.params.window_points extra_forbidden'],
  )
})

test('a new method needs its params; naming the same method does not', () => {
  assert.deepEqual(locations(patchProblems(before, { method_key: 'robust_band' }, false)), [
    'body.params missing',
  ])
  assert.deepEqual(patchProblems(before, { method_key: 'threshold' }, false), [])
  const read = patched(before, { method_key: 'robust_band', params: {} }, false)
  assert('value' in read)
  assert.equal(read.value.after.params.k, 4)
})

test('problems that the schema of a body reports are not reported twice', () => {
  assert.deepEqual(createProblems({ ...draft, params: [], name: 4 }), [])
  assert.deepEqual(createProblems({ ...draft, scope: { x: 1 } }), [])
  assert.deepEqual(locations(createProblems({ ...draft, name: 4, params: { k: 4 } })), [
    'body.params.k extra_forbidden',
    'body.params.upper value_error',
  ])
  assert.deepEqual(patchProblems(before, { params: 5, scope: [] }, false), [])
  for (const body of [undefined, null, [], 'x', 4]) {
    assert.deepEqual(createProblems(body), [])
    assert.deepEqual(patchProblems(before, body, true), [])
  }
})

test('a patch does not change the definition object that it is applied to, and an empty one changes nothing', () => {
  const copy = structuredClone(before)
  for (const isMerge of [true, false]) {
    const read = patched(before, {}, isMerge)
    assert('value' in read)
    assert.deepEqual(changedFields(before, read.value.after), [])
    patched(before, { params: { lower: 3 }, scope: { attributes: { a: 'b' } } }, isMerge)
  }
  assert.deepEqual(before, copy)
})

test('only fields that differ count as changed', () => {
  const read = patched(before, { name: 'Queue', enabled: false, params: { upper: 100 } }, false)
  assert('value' in read)
  assert.deepEqual(changedFields(before, read.value.after), ['enabled'])
})

test('a system detector keeps name, metric and method, and a patch may repeat them', () => {
  const [system] = systemDetectors
  assert(system !== undefined)
  assert.deepEqual(refusedOnSystem(system, { name: 'Mine', method_key: 'threshold', enabled: false }), [
    'name',
    'method_key',
  ])
  assert.deepEqual(refusedOnSystem(system, { name: system.name, metric_key: system.metric_key }), [])
})

test('the system detectors watch distinct built-in metrics per service', () => {
  assert.equal(new Set(systemDetectors.map(({ metric_key }) => metric_key)).size, systemDetectors.length)
  for (const { metric_key, scope } of systemDetectors) {
    assert(builtInMetrics.some((metric) => metric.metric_key === metric_key))
    assert.deepEqual(scope, { group_by: 'service' })
  }
})

test('If-Match uses strong comparison, one of several tags is enough, and * matches any', () => {
  assert.equal(etagOf(3), '"3"')
  for (const yes of [undefined, '*', '"3"', '"1", "3"']) assert(ifMatchAllows(yes, 3), String(yes))
  for (const no of ['', '"2"', 'W/"3"', '3', '"3']) assert(!ifMatchAllows(no, 3), no)
})

// The rows of RFC 7396, appendix A.
test('a merge patch follows the examples of RFC 7396', () => {
  const rows: [unknown, unknown, unknown][] = [
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [
      ['a', 'b'],
      ['c', 'd'],
      ['c', 'd'],
    ],
    [{ a: 'b' }, ['c'], ['c']],
    [{ a: 'foo' }, null, null],
    [{ a: 'foo' }, 'bar', 'bar'],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ]
  for (const [target, patch, result] of rows) assert.deepEqual(mergePatch(target, patch), result)
})

test('a merge patch cannot reach a prototype', () => {
  const merged = mergePatch({}, JSON.parse('{"__proto__":{"polluted":1}}'))
  assert.equal(Object.getPrototypeOf(merged), Object.prototype)
  assert.equal(Reflect.get({}, 'polluted'), undefined)
})

test('merging an object without nulls twice gives the same as merging it once', () => {
  const json = fc.dictionary(fc.string(), fc.oneof(fc.integer(), fc.dictionary(fc.string(), fc.integer())))
  fc.assert(
    fc.property(json, json, (target, patch) => {
      const once = mergePatch(target, patch)
      assert.deepEqual(mergePatch(once, patch), once)
    }),
  )
})

test('any body gives problems and never throws', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.boolean(), (body, isMerge) => {
      assert(Array.isArray(patchProblems(before, body, isMerge)))
      assert(Array.isArray(createProblems(body)))
    }),
  )
})

test('a method that compares peers needs a group, wherever a definition comes from', () => {
  const alone = { ...draft, method_key: 'peer_outlier', params: {} }
  const grouped = definitionOf({ ...alone, scope: { group_by: 'host.name' } })
  const missing = ['body.scope.group_by missing']
  assert.deepEqual(locations(problemsOf(alone)), missing)
  assert.deepEqual(locations(problemsOf({ ...alone, scope: undefined })), missing)
  assert.deepEqual(locations(createProblems({ ...alone, params: { k: 0 } })), [
    'body.params.k greater_than_equal',
    ...missing,
  ])
  assert.match(problemsOf(alone)[0]?.msg ?? '', /set scope.group_by/)
  assert.deepEqual(createProblems({ ...alone, scope: { group_by: 'host.name' } }), [])
  assert.deepEqual(createProblems({ ...draft, scope: {} }), [], 'no other method needs one')

  assert.deepEqual(locations(patchProblems(grouped, { scope: {} }, false)), missing)
  assert.deepEqual(locations(patchProblems(grouped, { scope: { group_by: null } }, true)), missing)
  assert.deepEqual(patchProblems(grouped, { scope: { service: 'checkout' } }, true), [])
  assert.deepEqual(
    locations(patchProblems(before, { method_key: 'peer_outlier', params: {} }, false)),
    missing,
  )
  const both = { method_key: 'peer_outlier', params: {}, scope: { group_by: 'service' } }
  assert.deepEqual(patchProblems(before, both, false), [])
  assert('problems' in patched(grouped, { scope: {} }, false))
})
