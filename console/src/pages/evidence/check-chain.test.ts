// The browser's check of a chain, against exports of the service and every kind of change to them.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { JWK } from 'jose'
import { exportChain } from '../../../../server/audit/export.ts'
import { KeySeal } from '../../../../server/audit/key-seal.ts'
import { appendAudit, appendLedger, type ChainName } from '../../../../server/audit/log.ts'
import { SigningKeys } from '../../../../server/audit/signing.ts'
import { tokenActor } from '../../../../server/core/actor.ts'
import { ManualClock } from '../../../../server/core/manual-clock.ts'
import { openControlPlane } from '../../../../tests/control-planes.ts'
import { type ChainCheck, checkChain } from './check-chain.ts'

const { control, close } = await openControlPlane()
const clock = new ManualClock(1_763_717_400_000)
const keys = new SigningKeys(control, clock, new KeySeal('a sealing key that only this test has'))
const deps = { control, clock, keys }
let published: readonly JWK[]
after(close)

const actor = tokenActor('tok_1', 'Grüße 👋 "quote" \\')

async function fill(tenantId: string, entries: number): Promise<void> {
  await control.transaction().execute(async (trx) => {
    for (let i = 0; i < entries; i++) {
      const facts = { count: i, ratio: 0.1 + i, nested: [1, null, 'ü'] }
      const event = { actor, action: 'thing.done', target: null, outcome: 'accepted' as const, facts }
      await appendAudit(trx, tenantId, clock.nowMs(), event)
      const step = { request_id: 'del_1', actor, from_status: null, to_status: 'running', facts }
      await appendLedger(trx, tenantId, clock.nowMs(), step)
    }
  })
}

before(async () => {
  for (const tenantId of ['acme', 'globex']) await fill(tenantId, 6)
  await keys.sign({}, 'test')
  published = (await keys.jwks()).keys
})

async function exported(tenantId: string, chain: ChainName = 'audit'): Promise<string[]> {
  const lines: string[] = []
  for await (const line of exportChain(deps, chain, tenantId)) lines.push(line.trimEnd())
  return lines
}

async function check(
  lines: readonly string[],
  { chain = 'audit', told = [] }: { chain?: ChainName; told?: number[] } = {},
): Promise<ChainCheck> {
  async function* sent() {
    yield* lines
  }
  return checkChain(sent(), { chain, tenantId: 'acme', keys: published }, (entries) => told.push(entries))
}

const brokenAt = (found: ChainCheck) => (found.kind === 'broken' ? found.line : null)

test('a chain as the service exports it is valid, and progress ends at its length', async () => {
  for (const chain of ['audit', 'ledger'] as const) {
    const told: number[] = []
    const found = await check(await exported('acme', chain), { chain, told })
    assert.equal(found.kind, 'valid', JSON.stringify(found))
    assert.equal(found.kind === 'valid' && found.entries, 6)
    assert.equal(told.at(-1), 6)
  }
  const empty = await exported('nobody')
  assert.equal(empty.length, 1)
  assert.deepEqual(brokenAt(await check(empty)), 1, 'the checkpoint of another organisation')
})

test('a changed, removed, repeated, moved or foreign line is named', async () => {
  const lines = await exported('acme')
  const other = await exported('globex')
  const swapped = [...lines.slice(0, 2), lines[3] ?? '', lines[2] ?? '', ...lines.slice(4)]
  const cases: readonly (readonly [string, readonly string[], number])[] = [
    ['changed', lines.map((line, i) => (i === 2 ? line.replace('thing.done', 'thing.gone') : line)), 3],
    ['removed', lines.filter((_, i) => i !== 2), 3],
    ['repeated', lines.flatMap((line, i) => (i === 2 ? [line, line] : [line])), 4],
    ['moved', swapped, 3],
    ['the first removed', lines.slice(1), 1],
    ['the last removed', lines.filter((_, i) => i !== 5), 6],
    ['without its checkpoint', lines.slice(0, -1), 7],
    ['with something behind the checkpoint', [...lines, lines[0] ?? ''], 8],
    ['another spelling of the same', lines.map((line, i) => (i === 4 ? line.replace('{', '{ ') : line)), 5],
    ['no JSON', lines.map((line, i) => (i === 1 ? line.slice(1) : line)), 2],
    ['of another organisation', other, 1],
    ['with the checkpoint of another organisation', [...lines.slice(0, -1), other.at(-1) ?? ''], 7],
  ]
  for (const [name, sent, line] of cases) assert.equal(brokenAt(await check(sent)), line, name)
})

test('a signature that is not valid, of another chain, or by an unknown key, is refused', async () => {
  const lines = await exported('acme')
  const entries = lines.slice(0, -1)
  const { checkpoint } = JSON.parse(lines.at(-1) ?? '{}')
  const forged = `${checkpoint.slice(0, -6)}AAAAAA`
  assert.equal(brokenAt(await check([...entries, JSON.stringify({ checkpoint: forged })])), 7)
  const ledger = await exported('acme', 'ledger')
  assert.equal(brokenAt(await check([...entries, ledger.at(-1) ?? ''])), 7)
  const wrongType = await keys.sign(JSON.parse(atob(checkpoint.split('.')[1])), 'something-else')
  assert.equal(brokenAt(await check([...entries, JSON.stringify({ checkpoint: wrongType })])), 7)
  published = []
  const unknown = await check(lines)
  assert.equal(unknown.kind === 'broken' && unknown.problem.includes('not published'), true)
})
