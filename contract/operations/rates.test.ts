// Every operation that changes something has a rate. Most changes are an entry of the audit log, which
// nothing removes, or a row that stays: without a rate a program could fill the disk with them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openApiDocument } from '../openapi/document.ts'
import type { Operation } from '../operation.ts'
import { auditOperations } from './audit.ts'
import { deletionOperations } from './deletions.ts'
import { detectorOperations } from './detectors.ts'
import { everyOperation } from './every.ts'
import { ingestOperations } from './ingest.ts'
import { sessionOperations } from './sessions.ts'
import { tenancyOperations } from './tenancy.ts'
import { usageOperations } from './usage.ts'

/** Operations other than GET without a rate, with the limit that they have instead. */
const unrated: ReadonlyMap<Operation, string> = new Map([
  ...Object.values(ingestOperations).map((one) => [one, 'memory, shares and quotas of ingest'] as const),
  [sessionOperations.signOut, 'a session ends once, and signing in has a rate'],
])

/** Reads that write, or that cost far more than a page. */
const dearReads: readonly Operation[] = [
  auditOperations.exportAuditLog,
  auditOperations.exportLedger,
  deletionOperations.certificate,
  detectorOperations.suggest,
  tenancyOperations.listTokens,
  usageOperations.byService,
]

const namesOf = (operations: readonly Operation[]) => operations.map(({ id }) => id).sort()

test('every operation that may change something has a rate, unless it has another limit', () => {
  const without = everyOperation.filter(({ method, rate }) => method !== 'GET' && rate === undefined)
  assert.deepEqual(namesOf(without), namesOf([...unrated.keys()]))
})

test('reads that write, or cost far more than a page, have a rate, and no others', () => {
  const rated = everyOperation.filter(({ method, rate }) => method === 'GET' && rate !== undefined)
  assert.deepEqual(namesOf(rated), namesOf(dearReads))
})

test('the reference has the rate of each operation beside its status 429', () => {
  const { paths } = openApiDocument(everyOperation, '1') as {
    paths: Record<string, Record<string, { responses: Record<string, { description: string }> }>>
  }
  for (const { id, method, path, rate } of everyOperation.filter((one) => one.rate !== undefined)) {
    const at = path.replace(/:([a-z_]+)/g, '{$1}')
    const text = paths[at]?.[method.toLowerCase()]?.responses['429']?.description ?? ''
    assert.match(text, new RegExp(`most ${rate?.perMinute} requests a minute .* ${rate?.burst} of them`), id)
    const begins = `${rate?.pace?.atOnce} begin when they arrive, and then ${rate?.pace?.perSecond} a second`
    assert.equal(text.includes(begins), rate?.pace !== undefined, id)
  }
})
