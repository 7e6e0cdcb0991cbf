// The codes by which stores and the file system report a fault of the disk, wrapped in other errors as in
// reality.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from './app-error.ts'
import { faultyPathOf, storageFaultOf } from './storage-fault.ts'

const withFields = (fields: Record<string, unknown>, cause?: unknown) =>
  Object.assign(new Error('it failed', { cause }), fields)

test('a full disk and a disk that refuses writes are distinguished, whichever store reports it', () => {
  const cases: readonly (readonly [Record<string, unknown>, string | null])[] = [
    [{ code: 'ENOSPC' }, 'full'],
    [{ code: 'EDQUOT' }, 'full'],
    [{ code: 'EFBIG' }, 'full'],
    [{ code: 'EROFS' }, 'failing'],
    [{ code: 'EIO' }, 'failing'],
    [{ code: 'ERR_SQLITE_ERROR', errcode: 13 }, 'full'],
    [{ code: 'ERR_SQLITE_ERROR', errcode: 4874 }, 'full'],
    [{ code: 'ERR_SQLITE_ERROR', errcode: 8 }, 'failing'],
    [{ code: 'ERR_SQLITE_ERROR', errcode: 778 }, 'failing'],
    [{ code: 243 }, 'full'],
    [{ code: 'ENOENT' }, null],
    [{ code: 'ERR_SQLITE_ERROR', errcode: 19 }, null],
    [{ code: 241 }, null],
    [{}, null],
  ]
  for (const [fields, fault] of cases) {
    assert.equal(storageFaultOf(withFields(fields)), fault, JSON.stringify(fields))
    assert.equal(storageFaultOf(new AppError('internal', { cause: withFields(fields) })), fault)
  }
})

test('a value that is not an error, and an error that is its own cause, have no fault', () => {
  assert.equal(storageFaultOf(undefined), null)
  assert.equal(storageFaultOf('ENOSPC'), null)
  const circular = new Error('round')
  circular.cause = circular
  assert.equal(storageFaultOf(circular), null)
})

test('the file whose disk is at fault is named, and not one of an error around it', () => {
  const full = withFields({ code: 'EROFS', path: '/backups/erasures.ndjson' })
  assert.equal(faultyPathOf(withFields({ path: '/data' }, full)), '/backups/erasures.ndjson')
  assert.equal(faultyPathOf(withFields({ code: 'ENOENT', path: '/data' })), null)
  assert.equal(faultyPathOf(withFields({ code: 'ERR_SQLITE_ERROR', errcode: 13 })), null)
})
