// Every table of the control plane either belongs to a store of derived telemetry or is kept on purpose, as
// SPEC.md says; a migration that adds a table fails here until that is decided.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { openControlPlane } from '../../tests/control-planes.ts'
import { derivedTables } from '../control/derived-tables.ts'
import { tables as telemetryTables } from '../telemetry/schema/tables.ts'
import { derivedStores } from './derived-stores.ts'

const { control, close } = await openControlPlane()
after(close)

const stores = derivedStores(control)

/** What SPEC.md says about each table: its derived store, or null where it is kept. */
const decided = new Map<string, string | null>()
const spec = readFileSync(new URL('../deletion/SPEC.md', import.meta.url), 'utf8')
const names = (cell = '') => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name ?? '')
for (const [, tables, fate] of spec.matchAll(/^\| (`[^|]*) \| (kept|erased \(`\w+`\)) *\|/gm)) {
  for (const table of names(tables)) {
    assert.ok(!decided.has(table), `SPEC.md names ${table} twice`)
    decided.set(table, names(fate)[0] ?? null)
  }
}

async function tablesOfTenants(): Promise<string[]> {
  const tables = await control.introspection.getTables()
  return tables
    .filter(({ columns }) => columns.some(({ name }) => name === 'tenant_id'))
    .map(({ name }) => name)
    .toSorted()
}

test('each table with a tenant_id is in a derived store or kept on purpose, and SPEC.md names no other', async () => {
  const found = await tablesOfTenants()
  assert.ok(found.includes('anomalies'), 'the walk finds tables')
  assert.deepEqual(found, [...decided.keys()].toSorted())
})

test('each derived store has the tables that SPEC.md says, and each table one store at most', () => {
  const written = [...decided].flatMap(([table, store]) => (store === null ? [] : [`${store}: ${table}`]))
  const coded = stores.flatMap(({ name, tables }) => tables.map((table) => `${name}: ${table}`))
  assert.deepEqual(coded.toSorted(), written.toSorted())
  const claimed = stores.flatMap(({ tables }) => tables)
  assert.equal(new Set(claimed).size, claimed.length)
})

test('the bytes of each table of a derived store are removed from the disk', () => {
  const flushed = new Set(derivedTables)
  assert.deepEqual(
    stores.flatMap(({ tables }) => tables).filter((table) => !flushed.has(table)),
    [],
  )
})

test('SPEC.md describes each derived store, and none has the name of a telemetry table', () => {
  const [, section = ''] = spec.split(/^\| derived store .*\n.*\n/m)
  const described = (section.split('\n\n')[0] ?? '').split('\n').map((row) => names(row)[0])
  assert.deepEqual(
    described,
    stores.map(({ name }) => name),
  )
  const taken: readonly string[] = [...telemetryTables.map(({ name }) => name), 'unfinished_copies']
  for (const { name } of stores) assert.ok(!taken.includes(name), name)
})
