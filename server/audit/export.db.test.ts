// An exported chain and everything that can be done to a file: each byte changed and removed in turn, random
// changes for the rest, and the forgeries of an attacker who can compute hashes. All of them must be found.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setImmediate as nextRound } from 'node:timers/promises'
import fc from 'fast-check'
import { openControlPlane } from '../../tests/control-planes.ts'
import { paceOfSteps } from '../../tests/with-turns.ts'
import { operatorActor, readActorText } from '../core/actor.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { seal } from './chain.ts'
import { exportChain, signCheckpoint } from './export.ts'
import { checkExport, ExportProblem } from './export-check.ts'
import { KeySeal } from './key-seal.ts'
import { appendAudit, appendLedger, type ChainName } from './log.ts'
import { SigningKeys } from './signing.ts'

const testSeal = new KeySeal('a sealing key that only this test has')

const { control, close } = await openControlPlane()
const clock = new ManualClock(1_763_717_400_000)
const keys = new SigningKeys(control, clock, testSeal)
const deps = { control, clock, keys }
after(async () => {
  await close()
})

/** Texts whose bytes can be damaged without a visible change. */
const actors = ['token:ci (tok_1)', 'Grüße 👋', 'a\ufffdb\ufffd', 'back\\slash "quote"\n\u2028', '\u0000']

async function fill(tenantId: string, entries: number): Promise<void> {
  await control.transaction().execute(async (trx) => {
    for (let i = 0; i < entries; i++) {
      const actor = actors[i % actors.length] ?? ''
      await appendAudit(trx, tenantId, clock.nowMs() + i, {
        actor: readActorText(actor),
        action: 'thing.done',
        target: null,
        outcome: 'accepted',
        facts: { count: i, ratio: 0.1 + i, nested: { list: [1, null, actor] } },
      })
      await appendLedger(trx, tenantId, clock.nowMs() + i, {
        request_id: 'del_1',
        actor: readActorText(actor),
        from_status: null,
        to_status: 'running',
        facts: { rows: i },
      })
    }
  })
}

async function exported(tenantId: string, chain: ChainName = 'audit'): Promise<Buffer> {
  const lines: string[] = []
  for await (const line of exportChain(deps, chain, tenantId)) lines.push(line)
  return Buffer.from(lines.join(''))
}
const check = async (file: Buffer, chain: ChainName = 'audit') =>
  checkExport([file], chain, await keys.jwks())
const found = (file: Buffer, reason: RegExp, chain: ChainName = 'audit') =>
  assert.rejects(check(file, chain), (error) => {
    assert.ok(error instanceof ExportProblem, String(error))
    assert.match(error.message, reason)
    return true
  })
const linesOf = (file: Buffer) => file.toString().trimEnd().split('\n')
const fileOf = (lines: readonly string[]) => Buffer.from(`${lines.join('\n')}\n`)

before(async () => {
  await fill('small', 3)
  await fill('large', 40)
  await fill('paged', 1203)
  await fill('other', 3)
})

test('a file as it was exported is valid, of every length, in whatever pieces it arrives', async () => {
  for (const [tenantId, entries] of [
    ['nobody', 0],
    ['small', 3],
    ['large', 40],
    ['paged', 1203],
  ] as const) {
    for (const chain of ['audit', 'ledger'] as const) {
      const file = await exported(tenantId, chain)
      const result = await check(file, chain)
      assert.deepEqual([result.tenantId, result.entries], [tenantId, entries])
      const pieces = Array.from({ length: Math.ceil(file.length / 7) }, (_, i) =>
        file.subarray(i * 7, i * 7 + 7),
      )
      assert.deepEqual(await checkExport(pieces, chain, await keys.jwks()), result)
    }
  }
})

test('every line is the canonical text of its entry, and the last one is the checkpoint', async () => {
  const lines = linesOf(await exported('small'))
  assert.equal(lines.length, 4)
  for (const [i, line] of lines.slice(0, 3).entries()) {
    const { hash, ...entry } = JSON.parse(line)
    assert.equal(seal(entry).hash, hash)
    assert.equal(entry.seq, i + 1)
  }
  const { checkpoint } = JSON.parse(lines.at(-1) ?? '')
  assert.deepEqual(JSON.parse(Buffer.from(checkpoint.split('.')[1], 'base64url').toString()), {
    tenant_id: 'small',
    chain: 'audit',
    entries: 3,
    head: JSON.parse(lines[2] ?? '').hash,
    at: '2025-11-21T09:30:00.000Z',
  })
})

test('each byte of a file, changed in any one bit or removed, is found', async () => {
  const file = await exported('small')
  const jwks = await keys.jwks()
  const isFound = (changed: Buffer, what: string) =>
    assert.rejects(checkExport([changed], 'audit', jwks), ExportProblem, what)
  for (let at = 0; at < file.length; at++) {
    for (let bit = 0; bit < 8; bit++) {
      const changed = Buffer.from(file)
      changed[at] = (file[at] ?? 0) ^ (1 << bit)
      await isFound(changed, `byte ${at}: bit ${bit}`)
    }
    await isFound(Buffer.concat([file.subarray(0, at), file.subarray(at + 1)]), `byte ${at}: removed`)
    await isFound(file.subarray(0, at), `cut off at ${at}`)
  }
})

const place = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const junk = fc.uint8Array({ minLength: 1, maxLength: 40 }).map((bytes) => Buffer.from(bytes))

/** One change of a file, at positions given as fractions of it. */
const damages: Record<string, (file: Buffer, a: number, b: number, bytes: Buffer) => Buffer> = {
  'overwrite bytes': (file, a, _b, bytes) => {
    const copy = Buffer.from(file)
    bytes.copy(copy, Math.floor(a * file.length))
    return copy
  },
  'insert bytes': (file, a, _b, bytes) => splice(file, a, a, bytes),
  'append bytes': (file, _a, _b, bytes) => Buffer.concat([file, bytes]),
  'remove a stretch': (file, a, b) => splice(file, Math.min(a, b), Math.max(a, b), Buffer.alloc(0)),
  'append a blank line': (file) => Buffer.concat([file, Buffer.from('\n')]),
  'begin with a mark': (file) => Buffer.concat([Buffer.from('\ufeff'), file]),
  'end lines as Windows does': (file) => Buffer.from(file.toString().replaceAll('\n', '\r\n')),
  'remove a line': (file, a) => inLines(file, (lines) => lines.toSpliced(pick(lines, a), 1)),
  'repeat a line': (file, a) =>
    inLines(file, (lines) => lines.toSpliced(pick(lines, a), 0, lines[pick(lines, a)] ?? '')),
  'move a line': (file, a, b) =>
    inLines(file, (lines) =>
      lines.toSpliced(pick(lines, a), 1).toSpliced(pick(lines, b), 0, lines[pick(lines, a)] ?? ''),
    ),
  'cut off lines': (file, a) => inLines(file, (lines) => lines.slice(0, pick(lines, a))),
  'space out a line': (file, a) =>
    inLines(file, (lines) => lines.with(pick(lines, a), (lines[pick(lines, a)] ?? '').replace(',', ', '))),
}
const pick = (lines: readonly string[], a: number) => Math.floor(a * lines.length)
const inLines = (file: Buffer, work: (lines: string[]) => string[]) => fileOf(work(linesOf(file)))
function splice(file: Buffer, from: number, to: number, bytes: Buffer): Buffer {
  const [start, end] = [Math.floor(from * file.length), Math.floor(to * file.length)]
  return Buffer.concat([file.subarray(0, start), bytes, file.subarray(end)])
}

for (const [name, damage] of Object.entries(damages)) {
  test(`damage is found: ${name}`, async () => {
    const file = await exported('large')
    const jwks = await keys.jwks()
    await fc.assert(
      fc.asyncProperty(place, place, junk, async (a, b, bytes) => {
        const damaged = damage(file, a, b, bytes)
        fc.pre(!damaged.equals(file))
        await assert.rejects(checkExport([damaged], 'audit', jwks), ExportProblem)
      }),
    )
  })
}

test('a problem is reported with its line, its entry and what it is', async () => {
  const file = await exported('small')
  const [one = '', two = '', three = '', end = ''] = linesOf(file)
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [
      [one, two.replace('thing', 'thinG'), three, end],
      /^line 2: .*entry 2 .*\(seq 2\).*does not match its hash/,
    ],
    [[one, three, end], /^line 2: .*entry 2 .*\(seq 3\).*numbered 3/],
    [[one, three, two, end], /^line 2: .*entry 2 .*numbered 3/],
    [[one, two, two, three, end], /^line 3: .*entry 3 .*numbered 2/],
    [[one, two, end], /^line 3: the checkpoint counts 3 entries, the file has 2/],
    [[one, two, three], /^line 4: the checkpoint is missing/],
    [[], /^line 1: .*not a JSON object/],
    [[one, `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`], /^line 2: .*not a JSON object/],
    [[one, two, three, end, three], /^line 5: something follows the checkpoint/],
    [[one, two.replace(',', ', '), three, end], /^line 2: .*not the canonical text/],
    [[one, two.replace('{', '{"a":1,"a":1,'), three, end], /^line 2: .*not the canonical text/],
  ]
  for (const [lines, reason] of cases) await found(fileOf(lines), reason)
  await found(Buffer.alloc(0), /^line 1: the checkpoint is missing/)
  await found(file.subarray(0, -1), /^line 4: the line has no end/)
  await found(Buffer.alloc(17 * 1024 * 1024, 0x20), /^line 1: the line is longer than any entry/)
})

test('an attacker who computes every hash again still lacks the signature', async () => {
  const lines = linesOf(await exported('small'))
  let prevHash = '0'.repeat(64)
  const forged = lines.slice(0, -1).map((line) => {
    const { hash: _, ...entry } = JSON.parse(line)
    const sealed = seal({ ...entry, actor: 'somebody else', prev_hash: prevHash })
    prevHash = sealed.hash
    return seal({ ...JSON.parse(sealed.text), hash: sealed.hash }).text
  })
  await found(fileOf([...forged, lines.at(-1) ?? '']), /the checkpoint ends at the hash/)

  const foreign = await openControlPlane()
  const keys = new SigningKeys(foreign.control, clock, testSeal)
  const forger = { control: foreign.control, clock, keys }
  const checkpoint = await signCheckpoint(forger, 'audit', 'small', { entries: 3, head: prevHash })
  await foreign.close()
  const file = fileOf([...forged, JSON.stringify({ checkpoint })])
  await found(file, /signed with the key .* not a trusted one/)
  const unchecked = await checkExport([file], 'audit', null)
  assert.equal(unchecked.kid, null, 'without trusted keys the signature is reported as not checked')
})

test('a checkpoint is valid only for its organisation, its chain and its kind', async () => {
  const entries = linesOf(await exported('small')).slice(0, -1)
  const end = async (tenantId: string, chain: ChainName) =>
    linesOf(await exported(tenantId, chain)).at(-1) ?? ''
  await found(fileOf([...entries, await end('other', 'audit')]), /the checkpoint ends at the hash/)
  await found(fileOf([...entries, await end('small', 'ledger')]), /of the chain ledger, not of the audit/)
  await found(await exported('small', 'ledger'), /of the chain ledger/)
  const head = JSON.parse(entries.at(-1) ?? '').hash
  const otherTenant = await signCheckpoint(deps, 'audit', 'other', { entries: 3, head })
  await found(
    fileOf([...entries, JSON.stringify({ checkpoint: otherTenant })]),
    /is of other, the file has an entry of small/,
  )
  const otherKind = await keys.sign({ tenant_id: 'small', chain: 'audit', entries: 3, head }, 'something+jws')
  await found(fileOf([...entries, JSON.stringify({ checkpoint: otherKind })]), /not of the type/)
})

test('a file stays valid after the key that signed it is retired', async () => {
  const file = await exported('small')
  await keys.rotate(operatorActor('test'))
  const now = await exported('small')
  assert.notEqual((await check(file)).kid, (await check(now)).kid)
})

test('other work runs between the pages of a long chain, however fast its reader is', async () => {
  await fill('long', 1001)
  let [rounds, isRead] = [0, false]
  const other = async () => {
    for (; !isRead; rounds++) await nextRound()
  }
  const running = other()
  const roundsAt: number[] = []
  for await (const _ of exportChain(deps, 'audit', 'long')) roundsAt.push(rounds)
  isRead = true
  await running
  assert.equal(roundsAt.length, 1001 + 1)
  // Signing the checkpoint after the last entry takes rounds too.
  const between = (roundsAt[1000] ?? 0) - (roundsAt[0] ?? 0)
  assert.ok(between >= 5, `${between} rounds`)
  const { pace, turns } = paceOfSteps()
  for await (const _ of exportChain(deps, 'audit', 'long', pace));
  assert.ok(turns() >= 90, `${turns()} turns, of which some ten lines are one`)
})
