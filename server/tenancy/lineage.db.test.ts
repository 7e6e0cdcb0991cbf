// Which actors may be one person, by tokens in a real control plane. Names of tokens are free text, and an
// attacker may choose them, so several of them here look like another token's.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { openControlPlane } from '../../tests/control-planes.ts'
import {
  type Actor,
  actorText,
  operatorActor,
  readActorText,
  systemActor,
  tokenActor,
} from '../core/actor.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { areRelated, findRelated } from './lineage.ts'
import { TenancyStore } from './store.ts'
import { newTokenSecret } from './tenancy.ts'

const operator = operatorActor('command-line')
const { control, close } = await openControlPlane()
after(close)
const store = new TenancyStore(control, new ManualClock(1_763_717_400_000))
for (const tenantId of ['acme', 'globex']) {
  await store.createOrganisation({ tenantId, name: tenantId, actor: operator }, async () => {})
}

/** Creates a token and returns its actor. */
async function make(actor: Actor, name = 'token', tenantId = 'acme'): Promise<Actor> {
  const secret = newTokenSecret('admin')
  await store.createToken({ tenantId, name, role: 'admin', secret, expiresAtMs: null, actor })
  const caller = await store.findCaller(secret)
  return caller?.requester ?? assert.fail('the token is not known')
}

async function assertRelated(first: Actor, second: Actor, expected: boolean): Promise<void> {
  const found = [
    await areRelated(control, 'acme', first, second),
    await areRelated(control, 'acme', second, first),
  ]
  assert.deepEqual(found, [expected, expected], `${actorText(first)} and ${actorText(second)}`)
}

test('a token is related to itself and not to another one that the operator made', async () => {
  const [ada, ben] = [await make(operator), await make(operator)]
  await assertRelated(ada, ada, true)
  await assertRelated(ada, ben, false)
})

test('a token is related to what was made with it, at any distance, and to no other line', async () => {
  const [ada, ben] = [await make(operator), await make(operator)]
  const child = await make(ada)
  const grandchild = await make(child)
  await assertRelated(ada, child, true)
  await assertRelated(ada, grandchild, true)
  await assertRelated(ben, child, false)
  await assertRelated(await make(ben), grandchild, false)
})

test('two tokens made with the same third one are related: its owner has both', async () => {
  const ada = await make(operator)
  const [first, second] = [await make(ada, 'ada'), await make(ada, 'ben')]
  await assertRelated(first, second, true)
  await assertRelated(await make(first), await make(second), true)
})

test('a name that looks like another token neither replaces it nor hides its own line', async () => {
  const [ada, ben] = [await make(operator, 'ada'), await make(operator, 'ben')]
  for (const name of ['x (tok_fake)', `ben (${ben.id})`, `token:ben (${ben.id})`, `(${ben.id})\n`]) {
    const disguised = await make(ada, name)
    await assertRelated(disguised, ada, true)
    await assertRelated(disguised, ben, false)
    await assertRelated(await make(disguised, 'child'), ada, true)
  }
})

test('a hundred generations and more are one line', async () => {
  for (const generations of [101, 300]) {
    const first = await make(operator)
    let last = first
    for (let made = 0; made < generations; made++) last = await make(last)
    await assertRelated(first, last, true)
    await assertRelated(await make(operator), last, false)
  }
})

test('an actor without a known token is related to everybody', async () => {
  const [ada, ben] = [await make(operator), await make(operator)]
  const strangers: Actor[] = [
    systemActor('retention'),
    operator,
    tokenActor('tok_gone', 'gone'),
    tokenActor('', 'nameless'),
    { kind: 'person', id: ben.id, name: 'ben' },
    { kind: 'operator', id: ben.id, name: 'ben' },
    ...['', 'operator', `${actorText(ben)} `].map(readActorText),
  ]
  for (const nobody of strangers) {
    await assertRelated(nobody, ada, true)
    await assertRelated(nobody, nobody, true)
  }
  const foreign = await make(operator, 'token', 'globex')
  await assertRelated(foreign, ada, true)
})

test('a removed token, and one whose root was removed, is related to everybody', async () => {
  const [ada, ben] = [await make(operator), await make(operator)]
  const child = await make(ada)
  await assertRelated(child, ben, false)
  await sql`update access_tokens set root_id = null where id = ${child.id}`.execute(control)
  await assertRelated(child, ben, true)
  await assertRelated(await make(child), ben, true)
  await sql`delete from access_tokens where id = ${ada.id}`.execute(control)
  await assertRelated(ada, ben, true)
})

test('a revoked token keeps its line: neither its child nor its sibling becomes another person', async () => {
  const ada = await make(operator)
  const [child, sibling] = [await make(ada), await make(ada)]
  const { id } = ada
  await store.revokeToken({
    tenantId: 'acme',
    id,
    actor: operator,
    actorRole: 'owner',
    withDescendants: false,
    onAdministratorRevoked: async () => {},
  })
  await assertRelated(child, ada, true)
  await assertRelated(await make(child), sibling, true)
  await assertRelated(child, await make(operator), false)
})

test('in random trees, tokens are related exactly where they are in one tree', async () => {
  // Each number selects the earlier token that makes the next one, or the operator.
  const makers = fc.array(fc.nat(40), { minLength: 2, maxLength: 30 })
  const pick = fc.nat(1_000)
  await fc.assert(
    fc.asyncProperty(makers, pick, pick, async (choices, first, second) => {
      const tokens: { readonly requester: Actor; readonly tree: number }[] = []
      for (const [at, choice] of choices.entries()) {
        const maker = tokens[choice % (tokens.length + 1)]
        tokens.push({ requester: await make(maker?.requester ?? operator), tree: maker?.tree ?? at })
      }
      const [a, b] = [tokens[first % tokens.length], tokens[second % tokens.length]]
      assert.ok(a && b)
      await assertRelated(a.requester, b.requester, a.tree === b.tree)
      const others = tokens.map(({ requester }) => requester)
      const related = others.filter((_, at) => tokens[at]?.tree === a.tree)
      const isRelated = await findRelated(control, 'acme', a.requester, others)
      assert.deepEqual(others.filter(isRelated), related)
    }),
    { numRuns: 25 },
  )
})
