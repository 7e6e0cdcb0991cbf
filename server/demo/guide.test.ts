// The guide at the end of the demo, whose commands must be valid when pasted, and the progress line of its
// loading.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { GuideFacts } from './guide.ts'
import { incidentFacts, openProgressLine, renderGuide, shellWord } from './guide.ts'
import { openShop } from './shop.ts'

const facts: GuideFacts = {
  baseUrl: 'http://127.0.0.1:8080',
  tenantId: 'org_01J9',
  consoleLink: `http://127.0.0.1:8080/console/sign-in#code=lethe_code_${'x'.repeat(43)}`,
  ownerToken: 'lethe_owner_token',
  ingestToken: 'lethe/ingest+token',
  anomalyId: 'anm_7',
  detectorId: 'det_3',
  eraseBefore: '2025-11-12T00:00:00Z',
  incidents: [
    {
      at: '2025-11-19T00:07:00Z',
      sentence: 'payments is slow',
      reasons: [
        'error ratio of payments 0.500 (12 of 24 requests failed), expected 0 to 0.0500; 1 hour 15 minutes high from 23:55 to 01:10 UTC',
        'error logs of payments 105, expected 0 to 20.0',
        'p95 latency of gateway 2,535 ms',
        'p95 latency of storefront 2,547 ms',
      ],
    },
    { at: '2025-11-19T00:08:00Z', sentence: 'nobody noticed', reasons: [] },
  ],
  nextIncidentMinutes: 3.2,
}

/** Returns the JSON bodies of a guide, as the shell passes them to curl. */
function bodiesIn(guide: string): unknown[] {
  return [...guide.matchAll(/^ +-d (.*?)\)?(?:; echo .*)?$/gm)].map(([, word]) => {
    const text = execFileSync('sh', ['-c', `printf %s ${word}`], { encoding: 'utf8' })
    return JSON.parse(text)
  })
}

describe('the guide', () => {
  test('has bodies that are valid JSON in the form that the service expects', () => {
    assert.deepEqual(bodiesIn(renderGuide(facts)), [
      { window_minutes: 4320, schedule_minutes: 10 },
      { scope: 'range', range_end: '2025-11-12T00:00:00Z', confirm: 'org_01J9' },
    ])
  })

  test('keeps its bodies valid for any tenant id', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[ -~]{1,30}$/), (tenantId) => {
        const [, deletion] = bodiesIn(renderGuide({ ...facts, tenantId }))
        assert.deepEqual(deletion, { scope: 'range', range_end: facts.eraseBefore, confirm: tenantId })
      }),
      { numRuns: 8 },
    )
  })

  test('is a script that a shell can parse', () => {
    const commands = renderGuide(facts)
      .split('\n')
      .filter((line) => /^ {2}(export|curl|ANSWER|ID|until| {2}["|-]| {2}-)/.test(line))
      .join('\n')
    assert.match(commands, /usage\/storage\/deletions/)
    execFileSync('sh', ['-n'], { input: commands })
  })

  test('has a command that finds the request id in the response of a deletion', () => {
    const line = renderGuide(facts)
      .split('\n')
      .find((each) => each.trim().startsWith('ID='))
    const answer = '{"request_id":"del_42","scope":"range","status":"running"}'
    const found = execFileSync('sh', ['-c', `${line}; printf %s "$ID"`], {
      encoding: 'utf8',
      env: { ANSWER: answer },
    })
    assert.equal(found, 'del_42')
  })

  test('configures any OpenTelemetry SDK, with the ingest token encoded as the specification requires', () => {
    const guide = renderGuide(facts)
    assert.match(guide, /^ +export OTEL_EXPORTER_OTLP_ENDPOINT=http:\/\/127\.0\.0\.1:8080$/m)
    assert.match(
      guide,
      /^ +export OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20lethe%2Fingest%2Btoken$/m,
    )
    assert.match(guide, /^ +export OTEL_EXPORTER_OTLP_PROTOCOL=http\/protobuf$/m)
  })

  test('names the anomaly, the detector, the incidents of the past and the next one', () => {
    const guide = renderGuide(facts)
    for (const part of [
      'anomalies/anm_7',
      'detectors/det_3',
      '- error ratio of payments 0.500',
      '01:10 UTC',
      'and 1 more anomaly',
      'no detector reported it',
      'payments is slow',
      'in about 4 minutes',
    ]) {
      assert.ok(guide.includes(part), part)
    }
  })

  test('leaves out absent facts', () => {
    const { anomalyId: _, detectorId: __, incidents: ___, nextIncidentMinutes: ____, ...bare } = facts
    const guide = renderGuide(bare)
    assert.doesNotMatch(guide, /undefined|PATCH|What happened/)
    assert.match(guide, /No anomalies yet/)
  })

  test('has escape codes only when colour is wanted, and no line too long for a terminal of 110 columns', () => {
    const introducer = String.fromCharCode(27)
    assert.ok(!renderGuide(facts).includes(introducer))
    assert.ok(renderGuide(facts, { colour: true }).includes(`${introducer}[1m`))
    for (const line of renderGuide(facts).split('\n')) assert.ok(line.length <= 110, line)
  })
})

test('a shell parses any quoted word back to the same text', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[ -~]{0,20}$/), (word) => {
      const read = execFileSync('sh', ['-c', `printf %s ${word === '' ? "''" : shellWord(word)}`], {
        encoding: 'utf8',
      })
      assert.equal(read, word)
    }),
    { numRuns: 10 },
  )
})

describe('the progress line', () => {
  const run = (isTerminal: boolean): string[] => {
    const written: string[] = []
    const show = openProgressLine({ write: (text) => written.push(text), isTerminal })
    for (let doneRows = 0; doneRows <= 1_000; doneRows += 4)
      show({ doneRows, totalRows: 1_100, elapsedMs: doneRows * 2 })
    show({ doneRows: 1_004, totalRows: 1_004, elapsedMs: 2_008 })
    return written
  }

  test('without a terminal is a whole line at most every 10 %, the last one at 100 %', () => {
    const lines = run(false)
    assert.ok(lines.length >= 9 && lines.length <= 11, `${lines.length} lines`)
    assert.ok(lines.every((line) => line.endsWith('\n') && !line.includes('\r')))
    assert.match(lines.at(-1) ?? '', /100 % {2}1,004 rows {2}500 rows\/s {2}2\.0 s/)
    assert.equal(lines.filter((line) => line.includes('100 %')).length, 1)
  })

  test('overwrites itself on a terminal and ends with a line break', () => {
    const pieces = run(true)
    assert.ok(pieces.every((piece) => piece.startsWith('\r')))
    assert.ok(pieces.slice(0, -1).every((piece) => !piece.includes('\n')))
    assert.ok(pieces.at(-1)?.endsWith('\n'))
  })
})

test('the facts have the incidents that have begun, oldest first, and the time until the next', () => {
  const shop = openShop({ seed: 7, anchorNs: 1_763_522_220_000_000_000n })
  const nowMs = shop.anchorMinute * 60_000
  const { incidents, nextIncidentMinutes } = incidentFacts(shop, nowMs + 60_000, [])
  assert.deepEqual(
    incidents?.map(({ sentence }) => sentence.split(' ')[0]),
    ['inventory', 'because', 'the'],
  )
  assert.deepEqual(
    incidents,
    incidents?.toSorted((a, b) => a.at.localeCompare(b.at)),
  )
  assert.equal(nextIncidentMinutes, 4)
  const later = incidentFacts(shop, nowMs + 3_600_000, [])
  assert.equal(later.incidents?.length, 4)
  assert.equal(later.nextIncidentMinutes, undefined)
})

test('the facts have the anomalies of each incident, and the anomaly with the most related ones', () => {
  const shop = openShop({ seed: 7, anchorNs: 1_763_522_220_000_000_000n })
  const [leak, drop] = shop.incidents
  assert(leak && drop)
  const during = ({ startMinute, endMinute }: typeof leak, id: string, related_ids: string[]) => ({
    id,
    started_at: new Date((startMinute - 5) * 60_000).toISOString(),
    seen_until: new Date(endMinute * 60_000).toISOString(),
    reason: `${id} is high`,
    related_ids,
  })
  const found = [during(drop, 'b', ['c']), during(leak, 'a', []), { ...during(drop, 'c', []), reason: 'c' }]
  const { anomalyId, incidents } = incidentFacts(shop, shop.anchorMinute * 60_000, found)
  assert.deepEqual(
    incidents?.map(({ reasons }) => reasons),
    [['a is high'], ['b is high', 'c'], []],
  )
  assert.equal(anomalyId, 'b')
})
