// What a certificate contains and what it leaves out, without a store: the payload, the printed page, and the
// check of a file that may have been changed.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import canonicalize from 'canonicalize'
import fc from 'fast-check'
import {
  type CertificateAnswer,
  certificateType,
  DeletionCertificate,
} from '../../../contract/deletion/certificate.ts'
import { newKeyPair, signJws } from '../../audit/jws.ts'
import { actorValues } from '../../control/actor-columns.ts'
import { tokenActor } from '../../core/actor.ts'
import { instanceOf } from '../../core/process/instance.ts'
import type { StepSum } from '../attempt/step-store.ts'
import { noProgress, type RequestRow } from '../requests/request.ts'
import { buildCertificate, type CertificateFacts } from './certificate.ts'
import { CertificateProblem, checkCertificate } from './check.ts'
import { pagePolicy, renderPage } from './page.ts'
import { style } from './style.ts'

const startMs = Date.UTC(2026, 0, 14, 12)
const requestId = 'del_01kb2m7x0a9c3d5e7f9g1h3j5k'
const counted = { otel_logs: 0, anomalies: 0, unfinished_copies: 0 }

const approvedByBob = actorValues('approved_by', tokenActor('tok_2', 'bob'))
const request: RequestRow = {
  request_id: requestId,
  tenant_id: 'acme',
  scope: 'range',
  signals: '["logs"]',
  range_start_ns: '1767571200000000001',
  range_end_ns: '1768176000000000000',
  reason: 'leaked_secret',
  note: 'NOTE-OF-THE-REQUEST',
  ...actorValues('requested_by', tokenActor('tok_1', 'ada')),
  created_at_ms: startMs,
  idempotency_key: 'KEY-OF-THE-REQUEST',
  selection_hash: 'x',
  status: 'completed',
  hidden_at_ms: startMs,
  removed_at_ms: startMs + 1000,
  verified_at_ms: startMs + 1500,
  finished_at_ms: startMs + 1500,
  attempts: 1,
  crashes: 0,
  retry_at_ms: null,
  blocked_reason: null,
  progress: JSON.stringify({ ...noProgress, left_over: counted }),
  starts_at_ms: null,
  approve_by_ms: null,
  approved_by_kind: null,
  approved_by_id: null,
  approved_by_name: null,
  approved_at_ms: null,
  refuse_late: 0,
  late_rows: 0,
  attempts_forgiven: 0,
  has_mark: 1,
  came_back: 0,
  seq: 1,
}

const steps = (store: string, action: string, rows: number, more: Partial<StepSum> = {}): StepSum => ({
  ...{ store, action, steps: 1, partitions: 1, rows, bytes: rows * 10 },
  ...more,
})

const facts: CertificateFacts = {
  issuer: {
    instanceSha256: instanceOf('SECRET-INSTANCE-ID').certificateIssuer,
    serviceVersion: '0.1.0',
    schemaVersion: '0002-proof',
    engineVersion: '26.5.1',
  },
  derivedStores: ['anomalies'],
  notReached: [],
  organisationName: 'Acme Ltd.',
  request,
  steps: [steps('otel_logs', 'dropped', 100)],
  completion: { seq: 3, hash: 'ab'.repeat(32) },
  backups: [],
  supersedes: null,
  issuedAtMs: startMs + 5_250,
}

const built = (changes: Partial<CertificateFacts> = {}) => buildCertificate({ ...facts, ...changes })
const ofRequest = (changes: Partial<RequestRow>) => built({ request: { ...request, ...changes } })
const ofProgress = (changes: object) =>
  ofRequest({ progress: JSON.stringify({ ...noProgress, left_over: counted, ...changes }) })

test('a certificate names who, what, when and how, exactly and by the contract', () => {
  const certificate = built()
  assert.deepEqual(DeletionCertificate.parse(certificate), certificate)
  const { iss, iat, jti, issuer, organisation, times, ledger } = certificate
  assert.equal(iss, `lethe:instance:${issuer.instance_sha256}`)
  assert.equal(iat, Math.floor(facts.issuedAtMs / 1000))
  assert.equal(jti, `${requestId}/3-abababab-${facts.issuedAtMs.toString(36)}`)
  assert.equal(organisation.name_sha256, createHash('sha256').update('Acme Ltd.').digest('hex'))
  assert.deepEqual(certificate.request, {
    request_id: requestId,
    scope: 'range',
    signals: ['logs'],
    range_start: '2026-01-05T00:00:00.000000001Z',
    range_end: '2026-01-12T00:00:00Z',
    reason: 'leaked_secret',
    requested_by: 'token:ada (tok_1)',
    approved_by: null,
  })
  assert.deepEqual(times, {
    requested_at: '2026-01-14T12:00:00.000Z',
    approved_at: null,
    hidden_at: '2026-01-14T12:00:00.000Z',
    removed_at: '2026-01-14T12:00:01.000Z',
    verified_at: '2026-01-14T12:00:01.500Z',
    backups_clear_by: null,
  })
  assert.deepEqual(certificate.verification.stores, counted)
  assert.deepEqual(ledger, facts.completion)
})

test('it claims Clear, never Purge, and contains neither the note, nor the idempotency key, nor the instance’s secret', () => {
  const text = JSON.stringify(built())
  assert.match(text, /"category":"Clear \(logical removal and verification\)"/)
  assert.doesNotMatch(text, /purge/i)
  for (const secret of ['NOTE-OF', 'KEY-OF', 'SECRET-INSTANCE', 'Acme Ltd.']) {
    assert.ok(!text.includes(secret), secret)
  }
})

test('steps are listed by store and method; those that found nothing are not counted', () => {
  const { erasure } = built({
    steps: [
      steps('otel_logs', 'dropped', 150, { steps: 2, partitions: 2 }),
      steps('otel_logs', 'rewritten', 7),
      steps('otel_traces', 'found_done', 3),
      steps('otel_traces', 'none', 0),
      steps('anomalies', 'removed', 2, { partitions: 0, bytes: 0 }),
    ],
  })
  assert.deepEqual(erasure.stores, [
    { store: 'otel_logs', method: 'partition_dropped', partitions: 2, rows: 150, bytes: 1500 },
    { store: 'otel_logs', method: 'partition_rewritten', partitions: 1, rows: 7, bytes: 70 },
    { store: 'otel_traces', method: 'partition_settled_after_crash', partitions: 1, rows: 3, bytes: 30 },
    { store: 'anomalies', method: 'rows_removed', partitions: 0, rows: 2, bytes: 0 },
  ])
  assert.deepEqual([erasure.rows, erasure.bytes], [162, 1600])
})

test('backups, approval, late data and a wider erasure are included where there are any', () => {
  const backups = [
    { backup_id: 'bak_1', taken_at_ms: startMs - 5000, expires_at_ms: startMs + 9000 },
    { backup_id: 'bak_2', taken_at_ms: null, expires_at_ms: startMs + 7000 },
  ]
  const certificate = built({
    backups,
    supersedes: `${requestId}/1-00000000`,
    request: { ...request, refuse_late: 1, ...approvedByBob, approved_at_ms: startMs + 1 },
  })
  assert.equal(certificate.times.backups_clear_by, '2026-01-14T12:00:09.000Z')
  assert.deepEqual(
    certificate.backups.map(({ backup_id, taken_at }) => [backup_id, taken_at]),
    [
      ['bak_1', '2026-01-14T11:59:55.000Z'],
      ['bak_2', null],
    ],
  )
  assert.ok(certificate.exclusions.some((text) => /backups listed here/.test(text)))
  assert.ok(built().exclusions.some((text) => /no registered one may contain a copy/.test(text)))
  const ofDatabase = { ...facts, notReached: ['The log of the database.'] }
  assert.ok(buildCertificate(ofDatabase).exclusions.includes('The log of the database.'))
  assert.equal(certificate.supersedes, `${requestId}/1-00000000`)
  assert.equal(certificate.request.approved_by, 'token:bob (tok_2)')
  assert.equal(certificate.times.approved_at, '2026-01-14T12:00:00.001Z')
  assert.deepEqual([certificate.late_data.rule, built().late_data.rule], ['refused', 'accepted_as_new'])
  assert.equal(ofProgress({ erased_by: 'del_2' }).erasure.erased_with, 'del_2')
  assert.equal(built().erasure.erased_with, null)
})

test('nothing is certified that the request does not show', () => {
  for (const changes of [
    { status: 'verifying' },
    { verified_at_ms: null },
    { removed_at_ms: null },
    { hidden_at_ms: null },
  ]) {
    assert.throws(() => ofRequest(changes), /is not completed and verified/, JSON.stringify(changes))
  }
  assert.throws(() => ofProgress({ left_over: null }), /lacks otel_logs, anomalies/)
  assert.throws(() => ofProgress({ left_over: { otel_logs: 0 } }), /lacks anomalies/)
  assert.throws(() => ofProgress({ left_over: { ...counted, otel_logs: 1 } }), /something of it is left/)
  assert.throws(() => ofProgress({ left_over: { ...counted, elsewhere: 1 } }), /something of it is left/)
  assert.throws(() => ofProgress({ held_by: ['hld_1'] }), /something of it is left/)
  assert.throws(
    () => ofRequest({ signals: '["logs","traces"]' }),
    /lacks otel_traces/,
    'a signal that was not counted',
  )
})

test('a request that an older version completed can be certified', () => {
  const { held_by: _, erased_by: __, ...older } = { ...noProgress, left_over: counted }
  assert.equal(ofRequest({ progress: JSON.stringify(older) }).erasure.erased_with, null)
})

test('any selection that can be stored gives a certificate that matches the contract', () => {
  const ns = fc.option(fc.bigInt({ min: 0n, max: 5_662_310_400_000_000_000n }))
  fc.assert(
    fc.property(ns, ns, fc.string(), fc.string(), fc.boolean(), (start, end, name, by, isAll) => {
      const certificate = built({
        organisationName: name,
        request: {
          ...request,
          scope: isAll ? 'all' : 'range',
          range_start_ns: start?.toString() ?? null,
          range_end_ns: end?.toString() ?? null,
          ...actorValues('requested_by', tokenActor('tok_1', by)),
        },
      })
      assert.deepEqual(DeletionCertificate.parse(JSON.parse(JSON.stringify(certificate))), certificate)
    }),
  )
})

async function issued(certificate: DeletionCertificate = built()) {
  const { publicKey, privateJwk } = await newKeyPair()
  const jws = await signJws(certificate, certificateType, { kid: publicKey.kid, privateJwk })
  const answer: CertificateAnswer = {
    request_id: certificate.request.request_id,
    issued_at: certificate.issued_at,
    certificate,
    jws,
    jwks_uri: '/.well-known/jwks.json',
  }
  return { answer, jws, kid: publicKey.kid, jwks: { keys: [publicKey] }, sign: signJws, privateJwk }
}

test('an unchanged file is valid: as returned, reordered, reformatted, or only its signature', async () => {
  const { answer, jws, kid, jwks } = await issued()
  const reordered = Object.fromEntries(Object.entries(answer).reverse())
  const wrapped = `\n  ${jws.replace(/(.{60})/g, '$1\r\n')}\n`
  for (const text of [
    JSON.stringify(answer),
    JSON.stringify(reordered, null, 4),
    canonicalize(answer) ?? '',
    jws,
    wrapped,
  ]) {
    const checked = await checkCertificate(text, jwks)
    assert.deepEqual([checked.kid, checked.certificate], [kid, answer.certificate])
  }
})

/** Every path to a value in the response, with the value. */
function leaves(value: unknown, path: readonly string[] = []): [path: readonly string[], value: unknown][] {
  if (typeof value !== 'object' || value === null) return [[path, value]]
  return Object.entries(value).flatMap(([name, inner]) => leaves(inner, [...path, name]))
}

function changed(answer: object, path: readonly string[], value: unknown): string {
  const copy = structuredClone(answer)
  let at: Record<string, unknown> = copy as Record<string, unknown>
  for (const name of path.slice(0, -1)) at = at[name] as Record<string, unknown>
  const last = path.at(-1) ?? ''
  if (value === undefined) delete at[last]
  else at[last] = value
  return JSON.stringify(copy)
}

test('a changed, removed or added value is found and named, wherever it is', async () => {
  const { answer, jwks } = await issued()
  const all = leaves(answer)
  assert.ok(all.length > 40)
  for (const [path, value] of all) {
    const other =
      typeof value === 'string' ? `${value.slice(0, -1)}~` : typeof value === 'number' ? value + 1 : 'x'
    const isRemovable = !Array.isArray(
      path.slice(0, -1).reduce<unknown>((at, name) => Object(at)[name], answer),
    )
    for (const text of [
      changed(answer, path, other),
      ...(isRemovable ? [changed(answer, path, undefined)] : []),
    ]) {
      await assert.rejects(checkCertificate(text, jwks), (error) => {
        assert.ok(error instanceof CertificateProblem, String(error))
        const place = path[0] === 'jws' ? 'jws' : path.join('.')
        assert.ok(error.message.startsWith(place), `${error.message} should name ${place}`)
        return true
      })
    }
  }
  const refused = (text: string, reason: RegExp) =>
    assert.rejects(checkCertificate(text, jwks), (error) => {
      assert.ok(error instanceof CertificateProblem)
      assert.match(error.message, reason)
      return true
    })
  await refused(JSON.stringify({ ...answer, jwks: { keys: [] } }), /^jwks: a certificate has no such field/)
  await refused(
    changed(answer, ['certificate', 'backups', '0'], { backup_id: 'x' }),
    /^certificate\.backups\.0/,
  )
  await refused(
    changed(answer, ['certificate', 'more'], 1),
    /^certificate\.more: the file says 1, but nothing/,
  )
  await refused(JSON.stringify(answer).replace('"rows":100', '"rows":9,"rows":100'), /rows: .*more than once/)
  await refused(JSON.stringify(answer).replace('{', '{"__proto__":{},'), /^__proto__: /)
})

test('any other input is refused with a sentence', async () => {
  const deep = `{"certificate":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
  const { jwks } = await issued()
  for (const text of ['', '{', '[]', 'null', '{}', '<!doctype html>', 'a.b.c', '{"jws":5}', '\u0000', deep]) {
    await assert.rejects(checkCertificate(text, jwks), CertificateProblem, text)
  }
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.string(), fc.json()), (text) =>
      assert.rejects(checkCertificate(text, jwks), CertificateProblem),
    ),
  )
})

test('a key from the file is never trusted, and another statement signed by the same key is not a certificate', async () => {
  const { answer, jws, privateJwk, kid, jwks } = await issued()
  const foreign = await issued()
  await assert.rejects(checkCertificate(JSON.stringify(answer), foreign.jwks), /not a trusted one/)
  await assert.rejects(checkCertificate(jws, { keys: [] }), /not a trusted one/)
  const other = await signJws(answer.certificate, 'other+jws', { kid, privateJwk })
  await assert.rejects(checkCertificate(other, jwks), /not of the type/)
  const empty = await signJws({ hello: 1 }, certificateType, { kid, privateJwk })
  await assert.rejects(checkCertificate(empty, jwks), /not a certificate that this version knows/)
})

test('the page shows every fact that is signed and the signature in full', async () => {
  const certificate = built({
    backups: [{ backup_id: 'bak_1', taken_at_ms: startMs - 5000, expires_at_ms: startMs + 9000 }],
    request: { ...request, ...approvedByBob, approved_at_ms: startMs + 1 },
  })
  const { jws, kid } = await issued(certificate)
  const page = renderPage({ certificate, jws, kid }).replaceAll('\u202f', '')
  const spoken = new Set(['iss', 'iat', 'certificate_version', 'method', 'scope', 'rule', 'reason'])
  for (const [path, value] of leaves(certificate)) {
    if (value === null || spoken.has(path.at(-1) ?? '')) continue
    assert.ok(page.includes(String(value)), `${path.join('.')}: ${value}`)
  }
  for (const text of [jws, kid, 'partition dropped', 'leaked secret', '/.well-known/jwks.json']) {
    assert.ok(page.includes(text), text)
  }
})

test('the page loads nothing, runs nothing, and shows any name as text', async () => {
  const hostile = `"><img src=x onerror=alert(1)><script>alert(2)</script>'\`&amp;</style><style>`
  const certificate = built({
    request: {
      ...request,
      ...actorValues('requested_by', tokenActor('tok_1', hostile)),
      ...actorValues('approved_by', tokenActor('tok_2', hostile)),
      approved_at_ms: startMs,
    },
    issuer: { ...facts.issuer, engineVersion: hostile },
  })
  const page = renderPage({ certificate, jws: hostile, kid: hostile })
  const tags = page.replaceAll(style, '').match(/<[^>]*>/g) ?? []
  const names = new Set(tags.map((tag) => /^<[!/]?(\w+)/.exec(tag)?.[1]))
  for (const name of ['script', 'img', 'link', 'iframe', 'object', 'a']) assert.ok(!names.has(name), name)
  assert.deepEqual(
    tags.filter((tag) => / (?:on\w+|src|href|style)=/i.test(tag)),
    [],
  )
  assert.equal(page.match(/<style>/g)?.length, 1)
  assert.ok(page.includes('&#34;&#62;&#60;img src=x onerror=alert(1)&#62;'))
  assert.doesNotMatch(style, /url\(|@import|@font-face/)
  assert.match(
    pagePolicy,
    /^default-src 'none'; style-src 'sha256-[\w+/]{43}='; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
  )
})
