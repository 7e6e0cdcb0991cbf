// The examples of the contract, sent to a real service: each body is accepted as it is, and where the
// response is a success, it has the fields of the example. Ids in paths are those of the examples, which this
// service does not have, so some operations return 404.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { z } from 'zod'
import { pathExamples } from '../../contract/examples/params.ts'
import { bodyTypesOf, jsonType, type Operation, requestPath } from '../../contract/operation.ts'
import { everyOperation } from '../../contract/operations/every.ts'
import { type Service, startService } from './service.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.stop())

const withExample = everyOperation.filter(
  (operation) => operation.bodyExample !== undefined && bodyTypesOf(operation).includes(jsonType),
)

/**
 * Status of each valid example: success, or 404 because the service has nothing with the ids of the example.
 * Retention waits (202), because the example of the policy has required a second person before.
 */
const expected: Readonly<Record<string, number>> = {
  'POST /organisation/remove': 409,
  'POST /usage/storage/deletions': 202,
  'POST /usage/storage/deletions/preview': 200,
  'POST /usage/storage/deletions/:request_id/reject': 404,
  'PUT /usage/storage/deletion-policy': 200,
  'POST /usage/storage/holds': 201,
  'PUT /usage/storage/retention': 202,
  'PATCH /usage/storage/retention': 202,
  'POST /usage/storage/retention/changes/:change_id/reject': 404,
  'POST /tokens': 201,
  'POST /anomalies/:anomaly_id/feedback': 404,
  'POST /anomalies/mutes': 201,
  'POST /anomalies/detectors': 201,
  'PATCH /anomalies/detectors/:detector_id': 404,
  'POST /anomalies/detectors/preview': 200,
  'POST /v1/metrics': 200,
  'POST /v1/logs': 200,
  'POST /v1/traces': 200,
}

test('every example of a body is listed here with its status', () => {
  const names = withExample.map(({ method, path }) => `${method} ${path}`)
  assert.deepEqual(names.sort(), Object.keys(expected).sort())
})

const Fields = z.record(z.string(), z.unknown())

function fieldsOf(answer: unknown): string[] {
  return Object.keys(Fields.parse(answer)).sort()
}

async function send(operation: Operation) {
  const { bodyExample, method } = operation
  const answer = await service.send(method, requestPath(operation, pathExamples), { json: bodyExample })
  return { status: answer.status, text: answer.text }
}

for (const operation of withExample) {
  const name = `${operation.method} ${operation.path}`
  test(`${name} accepts its example`, async () => {
    const { status, text } = await send(operation)
    assert.equal(status, expected[name], text)
    const success = operation.results[status]
    if (success === undefined) return
    assert.deepEqual(fieldsOf(JSON.parse(text)), fieldsOf(success.example))
  })
}
