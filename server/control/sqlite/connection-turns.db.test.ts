// Whose transaction is next on the only connection of a control plane on SQLite.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { workFor, workForAll } from '../../core/work-owner.ts'
import { figuresOf } from '../dialect.ts'
import { migrate } from '../migrate.ts'
import { openSqlite } from './sqlite.ts'

const control = openSqlite(':memory:')
await migrate(control)
after(() => control.destroy())

const ended: string[] = []

/** Writes a row in a transaction that has some statements, and notes its end. */
const write = (key: string) =>
  control.transaction().execute(async (trx) => {
    for (let i = 0; i < 3; i++) {
      await trx
        .insertInto('instance')
        .values({ key: `${key} ${i}`, value: '' })
        .execute()
    }
    ended.push(key)
  })

test('an organisation with many transactions does not come before another, or the service, more than once', async () => {
  const flood = Array.from({ length: 50 }, (_, i) => workFor('flood', () => write(`flood ${i}`)))
  const calm = [workFor('calm', () => write('calm')), workForAll(() => write('service'))]
  await Promise.all([...flood, ...calm])
  assert.equal(ended.length, 52)
  const first = ended.slice(0, 4)
  for (const name of ['flood 0', 'calm', 'service']) assert.ok(first.includes(name), `${name}: ${first}`)
  const rows = await control.selectFrom('instance').select('key').where('key', 'like', 'flood%').execute()
  assert.equal(rows.length, 150)
})

test('those that wait are counted, and one that fails lets the next begin', async () => {
  const failing = control.transaction().execute(async () => {
    throw new Error('no')
  })
  const next = workFor('acme', () => write('after a failure'))
  await Promise.resolve()
  assert.ok(figuresOf(control).connections.waiting > 0)
  await assert.rejects(failing, /no/)
  await next
  assert.equal(ended.at(-1), 'after a failure')
  assert.equal(figuresOf(control).connections.waiting, 0)
})
