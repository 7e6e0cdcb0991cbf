// Ids as a row of a table shows them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shortActor, shortId } from './short-ids.ts'

test('an id and an actor are shown with the end of the id, which differs', () => {
  assert.equal(shortId('del_01m87hkhj4hx8pstvrjn46k75s'), 'del_…46k75s')
  assert.equal(shortActor('token:owner (tok_01m87hhjammm3zmgm0b8f7607p)'), 'token:owner (tok_…f7607p)')
  assert.equal(shortActor('system:deletion'), 'system:deletion')
})
