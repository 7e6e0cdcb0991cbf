// What each page of the console shows: when it is loaded, where there is nothing, and without which HTTP
// request it shows nothing. `fillPages` makes an organisation with something on every page.

import assert from 'node:assert/strict'
import { systemClock } from '../../server/core/clock.ts'
import { eraseCompletely, type Service, type Tenant } from '../scenario/service.ts'
import { sendSample } from '../scenario/telemetry.ts'

const msPerDay = 86_400_000

export interface PageCase {
  /** Of the address, behind the organisation. */
  readonly path: string
  /** The path of the HTTP request that it waits for; null where it reads nothing. */
  readonly reads: string | null
  readonly loaded: string
  /** Null where it always has something. */
  readonly empty: string | null
  /** What somebody reads who may only look; null where that is everything. */
  readonly forbidden: string | null
}

/** Sends, erases, holds and asks, so that something also waits for a second person. Returns the pages. */
export async function fillPages(service: Service, tenant: Tenant): Promise<readonly PageCase[]> {
  const as = `${tenant}/owner` as const
  const nowMs = systemClock.nowMs()
  const before = (days: number) => new Date(nowMs - days * msPerDay).toISOString()
  const times = [0, 1, 2].map((days) => BigInt(nowMs - days * msPerDay) * 1_000_000n)
  await sendSample(service, `${tenant}/ingest`, times)
  const range = { scope: 'range', range_start: before(1.5), range_end: before(0.5), confirm: tenant }
  const { request_id: requestId } = await eraseCompletely(service, range, as)
  const acts = [
    ['POST', '/usage/storage/holds', { case_ref: '2026-17', signals: ['logs'], range_end: before(300) }],
    ['PATCH', '/usage/storage/retention', { logs_days: 400 }],
    ['PUT', '/usage/storage/deletion-policy', { approval: 'every_deletion' }],
    ['POST', '/usage/storage/deletions', { scope: 'all', confirm: tenant }],
  ] as const
  for (const [method, path, json] of acts) {
    const { status, text } = await service.send(method, path, { as, json })
    assert.ok(status < 300, `${path}: ${text}`)
  }
  return casesOf(requestId, `from=${before(2.5)}&to=${before(0)}`)
}

/** @param selected the address of a range with telemetry, on the page Erase */
function casesOf(requestId: string, selected: string): readonly PageCase[] {
  const storage = '/usage/storage'
  const pageCase = (
    path: string,
    reads: string | null,
    loaded: string,
    texts: Partial<PageCase> = {},
  ): PageCase => ({
    ...{ path, reads, loaded, empty: null, forbidden: `Your role does not permit` },
    ...texts,
  })
  return [
    pageCase('storage', storage, 'By service', {
      empty: 'No telemetry has arrived',
      forbidden: 'Erasing is for',
    }),
    pageCase(`erase?${selected}`, `${storage}/deletions/preview`, 'A second owner or admin must approve it', {
      empty: 'Nothing that can be read is stored',
    }),
    pageCase('erasures', `${storage}/deletions`, 'These are all.', { empty: 'Nothing was ever erased' }),
    pageCase(`erasures/${requestId}`, `${storage}/deletions/${requestId}`, 'checked in this browser'),
    pageCase('retention', `${storage}/retention`, '400 UTC days', {
      forbidden: 'Your role may read the rules',
    }),
    pageCase('holds', `${storage}/holds`, '2026-17', { empty: 'No legal hold was ever placed' }),
    pageCase('ledger', '/ledger', 'These are all.', { empty: 'No entry yet' }),
    pageCase('audit', '/audit-log', 'These are all.'),
    pageCase('send', '/usage/refusals', 'Nothing was refused since'),
    pageCase('settings', '/organisation', 'You type it to confirm an erasure.', { forbidden: null }),
    pageCase('settings/tokens', '/tokens', 'These are all.'),
    pageCase('settings/approval', `${storage}/deletion-policy`, 'Who is a second person'),
    pageCase('settings/keys', '/.well-known/jwks.json', 'Copy as a JWK Set', { forbidden: null }),
    pageCase('settings/danger', null, 'Choose everything on the page Erase'),
  ]
}
