// Sets of attributes in results, parsed here and by the engine for the exporter's columns of maps: with any
// keys and values, and as many as a record may have.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { engineOfFile } from '../../tests/fixtures.ts'
import { paceOfSteps } from '../../tests/with-turns.ts'
import { Pace } from '../core/turns/pace.ts'
import { attributesOf, pairListColumn, pairsColumn } from './attribute.ts'
import { insertFixture } from './row-fixture.ts'
import { exporterDatabase } from './schema/exporter-views.ts'
import { raw, sql } from './sql.ts'

const engine = engineOfFile()

interface Answer {
  readonly own: string
  readonly events: readonly string[]
  readonly map: Readonly<Record<string, string>>
  readonly maps: readonly Readonly<Record<string, string>>[]
}

let traces = 0

/** One span with these attributes, and an event for each set. */
async function stored(
  own: Record<string, string>,
  events: readonly Record<string, string>[],
): Promise<Answer> {
  const id = `trace-${traces++}`
  await insertFixture(engine, { tenantId: 'own', placement: 1 }, 'otel_traces', [
    {
      TraceId: id,
      Timestamp: 1_767_571_200_000_000_000n,
      SpanAttributes: own,
      'Events.Timestamp': events.map(() => '1767571200.0'),
      'Events.Name': events.map(() => 'said'),
      'Events.Attributes': events,
    },
  ])
  const [row] = await engine.select<Pick<Answer, 'own' | 'events'>>(
    sql`select ${pairsColumn('SpanAttributesPairs')} as own, ${pairListColumn('`Events.AttributesPairs`')} as events from otel_traces where TraceId = ${id}`,
  )
  const [maps] = await engine.select<Pick<Answer, 'map' | 'maps'>>(
    sql`select SpanAttributes as map, \`Events.Attributes\` as maps from ${raw(exporterDatabase)}.otel_traces where TraceId = ${id}`,
  )
  assert.ok(row)
  assert.ok(maps)
  return { ...row, ...maps }
}

const read = (answered: string) => attributesOf(answered, new Pace())

const hostile = fc.oneof(
  fc.string({
    unit: fc.constantFrom('"', "'", '\\', '=', ':', ',', ';', ' ', '\n', '\0', 'a', 'ÿ', 'þ', 'ý'),
  }),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('', '__proto__', 'constructor'),
)
const attributes = fc.uniqueArray(fc.tuple(hostile, hostile), { maxLength: 6, selector: ([key]) => key })

test('attributes come back as they were sent, here and as the map of the exporter', async () => {
  await fc.assert(
    fc.asyncProperty(attributes, fc.array(attributes, { maxLength: 2 }), async (own, events) => {
      const sets = [own, ...events].map((pairs) => Object.fromEntries(pairs))
      const answer = await stored(Object.fromEntries(own), sets.slice(1))
      assert.deepEqual(await Promise.all([answer.own, ...answer.events].map(read)), sets)
      assert.deepEqual([answer.map, ...answer.maps], sets)
    }),
    { numRuns: 60 },
  )
})

test('a record with the most attributes that one may have is returned whole in both ways, and read in turns', async () => {
  const many = Object.fromEntries(Array.from({ length: 1024 }, (_, i) => [`key ${i}`, `value ${i}`]))
  const answer = await stored(many, [many])
  const { pace, turns } = paceOfSteps()
  assert.deepEqual(await attributesOf(answer.own, pace), many)
  assert.ok(turns() >= 90, `${turns()} turns`)
  assert.deepEqual([answer.map, ...answer.maps], [many, many])
})
