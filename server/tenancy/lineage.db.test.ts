// Who may be one person, over tokens in a real control plane. Names of tokens are free text and chosen by whoever
// wants to be somebody else, so several of them here look like another token's.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { migrate } from '../control/migrate.ts'
import { openSqlite } from '../control/sqlite.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { areRelated } from './lineage.ts'
import { TenancyStore } from './store.ts'
import { newTokenSecret } from './tenancy.ts'

const control = openSqlite(':memory:')
await migrate(control)
after(() => control.destroy())
const store = new TenancyStore(control, new ManualClock(1_763_717_400_000))
for (const tenantId of ['acme', 'globex']) {
  await store.createOrganisation({ tenantId, name: tenantId, actor: 'operator' }, async () => {})
}

/** Makes a token and answers the requester it stands for. */
async function make(actor: string, name = 'token', tenantId = 'acme'): Promise<string> {
  const secret = newTokenSecret('admin')
  await store.createToken({ tenantId, name, role: 'admin', secret, expiresAtMs: null, actor })
  const caller = await store.findCaller(secret)
  return caller?.requester ?? assert.fail('the token is not known')
}

async function assertRelated(first: string, second: string, expected: boolean): Promise<void> {
  const found = [
    await areRelated(control, 'acme', first, second),
    await areRelated(control, 'acme', second, first),
  ]
  assert.deepEqual(found, [expected, expected], `${first} and ${second}`)
}

test('a token is related to itself and not to another one that the operator made', async () => {
  const [ada, ben] = [await make('operator'), await make('operator')]
  await assertRelated(ada, ada, true)
  await assertRelated(ada, ben, false)
})

test('a token is related to what was made with it, at any distance, and to nothing of another line', async () => {
  const [ada, ben] = [await make('operator'), await make('operator')]
  const child = await make(ada)
  const grandchild = await make(child)
  await assertRelated(ada, child, true)
  await assertRelated(ada, grandchild, true)
  await assertRelated(ben, child, false)
  await assertRelated(await make(ben), grandchild, false)
})

test('two tokens made with the same third one are related: its holder has both', async () => {
  const ada = await make('operator')
  const [first, second] = [await make(ada, 'ada'), await make(ada, 'ben')]
  await assertRelated(first, second, true)
  await assertRelated(await make(first), await make(second), true)
})

test('a name that looks like another token neither takes its place nor hides its own line', async () => {
  const [ada, ben] = [await make('operator', 'ada'), await make('operator', 'ben')]
  const idOf = (requester: string) => requester.slice(requester.lastIndexOf('('))
  for (const name of ['x (tok_fake)', `ben ${idOf(ben)}`, `token:ben ${idOf(ben)}`, `${idOf(ben)}\n`]) {
    const disguised = await make(ada, name)
    await assertRelated(disguised, ada, true)
    await assertRelated(disguised, ben, false)
    await assertRelated(await make(disguised, 'child'), ada, true)
  }
})

test('what names no token is related to itself alone, and ids of another organisation say nothing', async () => {
  const ada = await make('operator')
  await assertRelated('system:retention', 'system:retention', true)
  await assertRelated('system:retention', 'operator', false)
  await assertRelated('operator', ada, false)
  const foreign = await make('operator', 'token', 'globex')
  await assertRelated(foreign, ada, false)
  await assertRelated(await make(foreign), await make(ada), false)
})

test('a line that was bent into a circle by hand ends', async () => {
  const ada = await make('operator', 'ada')
  const child = await make(ada, 'child')
  const id = /\((tok_[0-9a-z]+)\)$/.exec(ada)?.[1] ?? ''
  await sql`update access_tokens set created_by = ${child} where id = ${id}`.execute(control)
  await assertRelated(ada, child, true)
  await assertRelated(ada, await make('operator'), false)
})
