// Moving a control plane into an empty database: everything arrives once, whatever moment the move is
// interrupted at, and at no moment both databases can be used, nor neither of them for longer than the move.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { sql } from 'kysely'
import type { SharedTestControl } from '../../tests/control-plane.ts'
import { openSharedControlPlane } from '../../tests/control-planes.ts'
import { foundOrganisation } from '../app/found-organisation.ts'
import { controlTables, digestTable } from '../control/copy.ts'
import type { Control } from '../control/database.ts'
import { migrate } from '../control/migrate.ts'
import { assertUsable } from '../control/move-mark.ts'
import { operatorActor } from '../core/actor.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { TenancyStore } from '../tenancy/store.ts'
import { newTokenSecret } from '../tenancy/tenancy.ts'
import { type MoveOptions, moveControl } from './move.ts'

const actor = operatorActor('test')
const clock = new ManualClock(1_763_700_000_000)
/** Names in telemetry can have any character. */
const hostileNames = ['nul \0 inside', '\u0001 and \u00010', 'é ü 中 😀', `quote ' " \\`, '']
/** More rows than a page. */
const anomalies = 1_203

interface Scene {
  readonly source: SharedTestControl
  readonly target: SharedTestControl
  /** Lines of all moves so far. */
  readonly printed: string[]
  move(changes?: Partial<MoveOptions>): ReturnType<typeof moveControl>
}

async function openScene(t: TestContext): Promise<Scene> {
  const [source, target] = [await openSharedControlPlane(), await openSharedControlPlane(false)]
  t.after(() => Promise.all([source.close(), target.close()]))
  await fill(source.control)
  const printed: string[] = []
  const move: Scene['move'] = (changes) =>
    moveControl({
      source: { name: 'old', file: '/old', control: source.control, reader: source.another() },
      target: { name: 'new', file: null, control: target.control },
      installation: 'ours',
      withBrokenChains: false,
      say: (line) => printed.push(line),
      failpoint: async () => {},
      ...changes,
    })
  return { source, target, printed, move }
}

async function fill(control: Control): Promise<void> {
  const tenancy = new TenancyStore(control, clock)
  for (const tenantId of ['acme', 'globex']) {
    const organisation = { tenantId, name: tenantId, actor }
    const secret = newTokenSecret('owner')
    await tenancy.createOrganisation(organisation, (trx, nowMs) =>
      foundOrganisation(trx, organisation, secret, nowMs),
    )
    await insertAnomalies(control, tenantId)
  }
  await control.insertInto('instance').values({ key: 'data_folder', value: 'the secret' }).execute()
}

async function insertAnomalies(control: Control, tenantId: string): Promise<void> {
  const rows = Array.from({ length: anomalies }, (_, at) => ({
    id: `ano_${tenantId}_${at}`,
    tenant_id: tenantId,
    detector_id: 'det_1',
    group_key: hostileNames[at % hostileNames.length] ?? '',
    metric_key: 'm',
    signal: 'logs',
    started_at_ns: String(at),
    ended_at_ns: null,
    seen_until_ns: '1763700000000000001',
    peak_at_ns: '1',
    value: [0.1, -0, 1e-300, Number.MAX_SAFE_INTEGER, null][at % 5] ?? null,
    expected: null,
    lower: null,
    upper: null,
    score: at / 3,
    reason: 'r',
    created_at_ms: 1,
    updated_at_ms: 2,
  }))
  for (let from = 0; from < rows.length; from += 400) {
    await sql`insert into anomalies (${sql.join(Object.keys(rows[0] ?? {}).map((name) => sql.ref(name)))})
      values ${sql.join(rows.slice(from, from + 400).map((row) => sql`(${sql.join(Object.values(row))})`))}`.execute(
      control,
    )
  }
}

async function digests(control: Control): Promise<unknown> {
  const found: unknown[] = []
  for (const table of controlTables) {
    // Each side of a move records the other one there.
    if (table !== 'instance') found.push([table, await digestTable(control, table)])
  }
  const rows = await control.selectFrom('instance').selectAll().orderBy('key').execute()
  return [...found, rows.filter(({ key }) => !key.startsWith('left_control_plane '))]
}

/** Where each side has recorded a control plane that is not used any more. */
async function left(control: Control): Promise<unknown> {
  const rows = await control.selectFrom('instance').selectAll().orderBy('key').execute()
  return rows.flatMap(({ key, value }) => (key.startsWith('left_control_plane ') ? [[key, value]] : []))
}

/** Whether a service or a command would use it. */
async function isUsable(control: Control): Promise<boolean> {
  const tables = await control.introspection.getTables()
  if (tables.length === 0) return false
  return assertUsable(control).then(
    () => true,
    () => false,
  )
}

const usable = async ({ source, target }: Scene) => [
  await isUsable(source.control),
  await isUsable(target.control),
]

test('everything arrives, is counted and compared, and only the new database can be used', async (t) => {
  const scene = await openScene(t)
  const { source, target, printed } = scene
  const before = await digests(source.control)
  const moved = await scene.move()
  assert.deepEqual(await digests(target.control), before)
  assert.deepEqual(await usable(scene), [false, true])
  assert.equal(moved.tables.find(({ table }) => table === 'anomalies')?.rows, 2 * anomalies)
  assert.equal(moved.chains, 4)
  assert.ok(
    printed.some((line) => /^25 tables with \d+ rows are the same in old and new\.$/.test(line)),
    printed.join('\n'),
  )
  await assert.rejects(assertUsable(source.control), /was moved to new and is no longer used/)
  assert.deepEqual(await left(target.control), [['left_control_plane old', '/old']])
})

test('erased rows are not moved', async (t) => {
  const scene = await openScene(t)
  const { source, target } = scene
  await source.control.insertInto('instance').values({ key: 'x', value: 'erased-canary' }).execute()
  assert.notDeepEqual(source.filesWith('erased-canary'), [])
  await source.control.deleteFrom('instance').where('key', '=', 'x').execute()
  await scene.move()
  assert.deepEqual(target.filesWith('erased-canary'), [])
  assert.notDeepEqual(target.filesWith('the secret'), [])
})

test('a move that is interrupted anywhere leaves at most one usable database, and continues when it is repeated', async (t) => {
  const points = new Set<string>()
  const first = await openScene(t)
  await first.move({ failpoint: async (name) => void points.add(name) })
  assert.ok(points.size > 25, [...points].join())
  const scene = await openScene(t)
  const before = await digests(scene.source.control)
  for (const point of points) {
    const ended = scene.move({
      failpoint: async (name) => {
        if (name === point) throw new Error('the power went')
      },
    })
    // A page that an earlier attempt has copied is not copied again.
    await ended.catch((error) => assert.match(String(error), /the power went/))
    const state = await usable(scene)
    assert.deepEqual(state, [point !== 'source marked', false], point)
  }
  assert.equal((await scene.move()).wasComplete, true)
  assert.deepEqual(await digests(scene.target.control), before)
  assert.deepEqual(await usable(scene), [false, true])
  // Nothing more happens.
  await scene.move()
  assert.deepEqual(await usable(scene), [false, true])
})

test('a source that was used after an interruption is copied from the beginning', async (t) => {
  const scene = await openScene(t)
  const { source, target, printed } = scene
  const failpoint = async (name: string) => {
    if (name === 'copied anomalies') throw new Error('the power went')
  }
  await assert.rejects(scene.move({ failpoint }), /the power went/)
  await source.control.updateTable('organisations').set({ name: 'changed' }).execute()
  await source.control.deleteFrom('anomalies').where('id', '=', 'ano_acme_7').execute()
  const before = await digests(source.control)
  await scene.move()
  assert.ok(
    printed.some((line) => /has changed since .*: organisations, anomalies. It starts over/.test(line)),
  )
  assert.deepEqual(await digests(target.control), before)
  assert.deepEqual(await usable(scene), [false, true])
})

test('nobody writes to the source while it is copied', async (t) => {
  const scene = await openScene(t)
  const other = scene.source.another()
  await scene.source.waitAtMost(other, 1)
  let refused = 0
  await scene.move({
    failpoint: async (name) => {
      if (name !== 'copied organisations') return
      await assert.rejects(other.insertInto('instance').values({ key: 'late', value: '' }).execute())
      refused++
    },
  })
  assert.equal(refused, 1)
  assert.deepEqual(await usable(scene), [false, true])
})

test('a target that is not empty is refused and not changed', async (t) => {
  const scene = await openScene(t)
  const { target } = scene
  await migrate(target.control)
  await target.control.insertInto('instance').values({ key: 'data_folder', value: 'other' }).execute()
  const before = await digests(target.control)
  await assert.rejects(scene.move(), /new has the control plane of another installation/)
  await target.control.updateTable('instance').set({ value: 'the secret' }).execute()
  await assert.rejects(scene.move(), /new already has a control plane of this installation/)
  await target.control.updateTable('instance').set({ value: 'other' }).execute()
  assert.deepEqual(await digests(target.control), before)
  assert.deepEqual(await usable(scene), [true, true])
})

test('a target with tables of another program is refused', async (t) => {
  const scene = await openScene(t)
  await sql`create table sessions (id text)`.execute(scene.target.control)
  await assert.rejects(scene.move(), /new has a table sessions that is not Lethe’s/)
  assert.deepEqual(await usable(scene), [true, false])
})

test('a part of another move is refused, and the error names that move', async (t) => {
  const scene = await openScene(t)
  const failpoint = async (name: string) => {
    if (name === 'copied organisations') throw new Error('the power went')
  }
  await assert.rejects(scene.move({ failpoint }), /the power went/)
  // Where the move is never finished, the source stays in use and knows of the half target.
  assert.deepEqual(await left(scene.source.control), [['left_control_plane new', '']])
  await assert.rejects(scene.move({ installation: 'theirs' }), /half of another installation's control plane/)
  await assert.rejects(assertUsable(scene.target.control), /is incomplete: its move from old was interrupted/)
  const source = { name: 'third', file: null, control: scene.source.control, reader: scene.source.another() }
  await assert.rejects(scene.move({ source }), /half of the control plane old/)
})

test('an older source is migrated first, and a newer source or target is refused', async (t) => {
  const scene = await openScene(t)
  const { source, target } = scene
  for (const side of [source, target]) {
    await migrate(side.control)
    await sql`insert into kysely_migration values ('9999-of-tomorrow', '2026-11-22T22:40:00.000Z')`.execute(
      side.control,
    )
    await assert.rejects(scene.move(), /9999-of-tomorrow of a newer Lethe/)
    await sql`delete from kysely_migration where name = '9999-of-tomorrow'`.execute(side.control)
  }
  await scene.move()
  assert.deepEqual(await usable(scene), [false, true])
})

test('a broken chain is refused, or moved as it is', async (t) => {
  const scene = await openScene(t)
  const { source, target, printed } = scene
  await source.shell.dropChainGuards()
  await source.control
    .updateTable('audit_entries')
    .set({ hash: 'x' } as never)
    .where('tenant_id', '=', 'acme')
    .execute()
  await assert.rejects(scene.move(), /1 of 4 chains are broken/)
  assert.deepEqual(await usable(scene), [true, false])
  const before = await digests(source.control)
  await scene.move({ withBrokenChains: true })
  assert.ok(printed.some((line) => /^acme audit: BROKEN/.test(line)))
  assert.deepEqual(await digests(target.control), before)
})

test('a database without a control plane is not moved', async (t) => {
  const scene = await openScene(t)
  const empty = await openSharedControlPlane(false)
  t.after(empty.close)
  const source = { name: 'nothing', file: null, control: empty.control, reader: empty.another() }
  await assert.rejects(scene.move({ source }), /There is no control plane in nothing/)
})
