// Issuing on a real control plane: once, for its own organisation, and only for requests that are completed
// by the ledger, also when a request is carried out again.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeletionStatus } from '../../../contract/deletion/requests.ts'
import { openControlPlane } from '../../../tests/control-planes.ts'
import { hashOf } from '../../audit/chain.ts'
import { KeySeal } from '../../audit/key-seal.ts'
import { appendLedger, readChain } from '../../audit/log.ts'
import { SigningKeys } from '../../audit/signing.ts'
import { actorValues } from '../../control/actor-columns.ts'
import { operatorActor, tokenActor } from '../../core/actor.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { AppError } from '../../core/app-error.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { instanceOf } from '../../core/process/instance.ts'
import type { KnownBackup } from '../requests/request.ts'
import { noProgress } from '../requests/request.ts'
import { CertificateStore } from './store.ts'

const testSeal = new KeySeal('a sealing key that only this test has')

const startMs = Date.UTC(2026, 0, 14, 12)
async function open(t: { after(fn: () => Promise<void>): void }) {
  const { control, close } = await openControlPlane()
  t.after(close)
  const clock = new ManualClock(startMs)
  const keys = new SigningKeys(control, clock, testSeal)
  const backups: KnownBackup[] = []
  const deps = {
    control,
    clock,
    keys,
    derivedStores: ['anomalies'],
    notReached: async () => [],
    findBackups: async (requestId: string) => (requestId === 'del_1' ? backups : []),
    issuer: async () => ({
      instanceSha256: instanceOf('x').certificateIssuer,
      serviceVersion: '0.1.0',
      schemaVersion: '2',
      engineVersion: '26',
    }),
  }
  for (const [placement, tenant_id] of ['acme', 'globex'].entries()) {
    await control
      .insertInto('organisations')
      .values({ tenant_id, name: tenant_id, placement, created_at_ms: 0 })
      .execute()
  }

  /** Writes the ledger entry of a move. */
  const move = async (
    tenantId: string,
    requestId: string,
    from: DeletionStatus | null,
    to: DeletionStatus,
  ) => {
    const done = to === 'completed' ? clock.nowMs() : null
    await control.transaction().execute(async (trx) => {
      await trx
        .updateTable('deletion_requests')
        .set({ status: to, ...(done !== null && { removed_at_ms: done, verified_at_ms: done }) })
        .where('request_id', '=', requestId)
        .execute()
      await appendLedger(trx, tenantId, clock.nowMs(), {
        request_id: requestId,
        actor: tokenActor('tok_1', '"request_id":"del_other"'),
        from_status: from,
        to_status: to,
        facts: {},
      })
    })
  }
  const request = async (tenantId: string, requestId: string) => {
    await control
      .insertInto('deletion_requests')
      .values({
        request_id: requestId,
        tenant_id: tenantId,
        scope: 'range',
        signals: '["logs"]',
        range_start_ns: null,
        range_end_ns: '1768176000000000000',
        reason: null,
        note: null,
        ...actorValues('requested_by', tokenActor('tok_1', 'ada')),
        created_at_ms: clock.nowMs(),
        idempotency_key: null,
        selection_hash: requestId,
        status: 'running',
        hidden_at_ms: clock.nowMs(),
        removed_at_ms: null,
        verified_at_ms: null,
        finished_at_ms: null,
        attempts: 1,
        crashes: 0,
        retry_at_ms: null,
        blocked_reason: null,
        progress: JSON.stringify({
          ...noProgress,
          left_over: { otel_logs: 0, anomalies: 0, unfinished_copies: 0 },
        }),
        starts_at_ms: null,
        approve_by_ms: null,
        approved_at_ms: null,
        refuse_late: 0,
        late_rows: 0,
        attempts_forgiven: 0,
        has_mark: 1,
        came_back: 0,
      })
      .execute()
    await move(tenantId, requestId, null, 'running')
  }
  const completed = async (tenantId: string, requestId: string) => {
    await request(tenantId, requestId)
    await move(tenantId, requestId, 'running', 'completed')
  }
  return { control, clock, keys, backups, deps, store: new CertificateStore(deps), move, request, completed }
}

const refusedAs = (code: string, retryAfterSeconds?: number) => (error: unknown) => {
  assert.ok(error instanceof AppError, String(error))
  assert.deepEqual([error.code, error.retryAfterSeconds], [code, retryAfterSeconds])
  return true
}

test('a certificate is signed once: the same bytes later, after a restart, with a new key and with new backups', async (t) => {
  const { store, deps, clock, keys, backups, completed } = await open(t)
  backups.push({ backup_id: 'bak_1', taken_at_ms: startMs - 1, expires_at_ms: startMs + 99 })
  backups.push({ backup_id: 'bak_2', taken_at_ms: startMs + 1, expires_at_ms: startMs + 50 })
  await completed('acme', 'del_1')
  const first = await store.issue('acme', 'del_1', tokenNamed('ada'))
  assert.deepEqual(
    first.certificate.backups.map(({ backup_id }) => backup_id),
    ['bak_1', 'bak_2'],
    'as the register has them, whatever the dates',
  )
  await clock.advance(60_000)
  await keys.rotate(operatorActor('test'))
  backups.length = 0
  assert.deepEqual(await store.issue('acme', 'del_1', tokenNamed('bob')), first)
  assert.deepEqual(await new CertificateStore(deps).issue('acme', 'del_1', tokenNamed('bob')), first)
})

test('twenty concurrent first requests get one certificate, and the audit log names who requested it', async (t) => {
  const { store, control, completed } = await open(t)
  await completed('acme', 'del_1')
  const all = await Promise.all(
    Array.from({ length: 20 }, (_, i) => store.issue('acme', 'del_1', tokenNamed(`person ${i}`))),
  )
  assert.equal(new Set(all.map(({ jws }) => jws)).size, 1)
  const entries = (await readChain(control, 'audit_entries', 'acme')).map(({ text }) => JSON.parse(text))
  const issued = entries.filter(({ action }) => action === 'certificate.issued')
  assert.equal(issued.length, 1)
  assert.match(issued[0].actor, /^token:person \d+ \(tok_person\d+\)$/)
  assert.deepEqual(issued[0].facts, {
    jti: all[0]?.certificate.jti,
    jws_sha256: hashOf(all[0]?.jws ?? ''),
  })
})

test('another organisation’s deletion is unknown, before and after its certificate was issued', async (t) => {
  const { store, control, completed } = await open(t)
  await completed('globex', 'del_g')
  await completed('acme', 'del_a')
  await assert.rejects(store.issue('acme', 'del_g', tokenNamed('ada')), refusedAs('not_found'))
  await assert.rejects(store.issue('acme', 'del_none', tokenNamed('ada')), refusedAs('not_found'))
  const own = await store.issue('globex', 'del_g', tokenNamed('gil'))
  assert.equal(own.certificate.organisation.tenant_id, 'globex')
  await assert.rejects(store.issue('acme', 'del_g', tokenNamed('ada')), refusedAs('not_found'))
  const rows = await control.selectFrom('certificates').select(['request_id', 'tenant_id']).execute()
  assert.deepEqual(
    rows.map(({ request_id, tenant_id }) => [request_id, tenant_id]),
    [['del_g', 'globex']],
  )
})

test('in every state but completed there is none, and Retry-After is sent only where one may follow', async (t) => {
  const { store, control, request } = await open(t)
  await request('acme', 'del_1')
  const retryAfter: Record<DeletionStatus, number | undefined> = {
    awaiting_approval: 60,
    scheduled: 60,
    held: 60,
    running: 1,
    verifying: 1,
    incomplete: 1,
    failed: undefined,
    cancelled: undefined,
    rejected: undefined,
    expired: undefined,
    completed: undefined,
  }
  for (const [status, seconds] of Object.entries(retryAfter)) {
    await control.updateTable('deletion_requests').set({ status }).execute()
    await assert.rejects(
      store.issue('acme', 'del_1', tokenNamed('ada')),
      refusedAs('not_verified', seconds),
      status,
    )
  }
  assert.deepEqual(await control.selectFrom('certificates').selectAll().execute(), [])
})

test('a request that is carried out again has none until it is completed again, then a new one that names the old one', async (t) => {
  const { store, clock, control, move, completed } = await open(t)
  await completed('acme', 'del_1')
  // This id would match the other one if ids were matched as patterns.
  await completed('acme', 'delx1')
  const first = await store.issue('acme', 'del_1', tokenNamed('ada'))
  await move('acme', 'del_1', 'completed', 'running')
  await assert.rejects(store.issue('acme', 'del_1', tokenNamed('ada')), refusedAs('not_verified', 1))
  await clock.advance(5000)
  await move('acme', 'del_1', 'running', 'completed')
  const second = await store.issue('acme', 'del_1', tokenNamed('ada'))
  assert.equal(second.certificate.supersedes, first.certificate.jti)
  assert.equal(second.certificate.times.verified_at, '2026-01-14T12:00:05.000Z')
  assert.deepEqual([first.certificate.ledger.seq, second.certificate.ledger.seq], [2, 6])
  assert.notEqual(second.certificate.jti, first.certificate.jti)
  assert.deepEqual(await store.issue('acme', 'del_1', tokenNamed('ada')), second)
  assert.equal((await control.selectFrom('certificates').selectAll().execute()).length, 1)
})

test('a request that moves while its certificate is being signed gets none', async (t) => {
  const { deps, control, keys, move, completed } = await open(t)
  await completed('acme', 'del_1')
  const overtaken = new CertificateStore({
    ...deps,
    keys: {
      async sign(payload, typ) {
        await move('acme', 'del_1', 'completed', 'running')
        await move('acme', 'del_1', 'running', 'completed')
        return keys.sign(payload, typ)
      },
    },
  })
  await assert.rejects(overtaken.issue('acme', 'del_1', tokenNamed('ada')), refusedAs('not_verified', 1))
  assert.deepEqual(await control.selectFrom('certificates').selectAll().execute(), [])
})

test('a request whose completion is not in the ledger is not certified', async (t) => {
  const { store, control, request } = await open(t)
  await request('acme', 'del_1')
  await control
    .updateTable('deletion_requests')
    .set({ status: 'completed', removed_at_ms: startMs, verified_at_ms: startMs })
    .execute()
  await assert.rejects(store.issue('acme', 'del_1', tokenNamed('ada')), /ledger does not show/)
})
