// The three names of a service, derived from the secret of its data folder. Two of them are in existing
// files, so the tests fix their values.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { instanceOf } from './instance.ts'

test('the journal seal and the certificate issuer are those of older versions on the same folder', () => {
  const { certificateIssuer, journalSeal } = instanceOf('a folder')
  assert.equal(journalSeal, 'a folder')
  assert.equal(certificateIssuer, 'a98f611a25fa1cb430cbb98d731380a847bfd796fd1d139a711509ccc65aa097')
})

test('the owner of a lease does not reveal the secret, and belongs to the folder', () => {
  const { leaseHolder } = instanceOf('a folder')
  assert.match(leaseHolder, /^folder:[0-9a-f]{32}$/)
  assert.equal(instanceOf('a folder').leaseHolder, leaseHolder)
  assert.notEqual(instanceOf('another folder').leaseHolder, leaseHolder)
  const { certificateIssuer } = instanceOf('a folder')
  assert.ok(!certificateIssuer.startsWith(leaseHolder.slice('folder:'.length)))
})
