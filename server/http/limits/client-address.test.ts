// Finds the address that counts: that of the connection, unless a proxy that the operator has named gives
// another, and then what the proxy wrote and nothing that its client could have written.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { ClientAddresses } from './client-address.ts'

const nobody = new ClientAddresses([], 'x-forwarded-for')
const behind = new ClientAddresses(['10.0.0.0/8', '::1', '2001:db8:aaaa::/48'], 'x-forwarded-for')
const forwarded = new ClientAddresses(['10.0.0.1'], 'forwarded')

describe('the key of a client', () => {
  test('is its IPv4 address, also where that is mapped into IPv6', () => {
    for (const peer of ['192.0.2.7', '::ffff:192.0.2.7', '::FFFF:192.0.2.7']) {
      assert.equal(nobody.keyOf(peer, undefined), '192.0.2.7')
    }
  })

  test('is the network of its IPv6 address, so that a customer’s many addresses are one', () => {
    const key = nobody.keyOf('2001:db8:1:2::1', undefined)
    for (const peer of [
      '2001:db8:1:2:ffff:ffff:ffff:ffff',
      '2001:0db8:0001:0002::',
      '2001:db8:1:2:3::%eth0',
    ]) {
      assert.equal(nobody.keyOf(peer, undefined), key)
    }
    assert.notEqual(nobody.keyOf('2001:db8:1:3::1', undefined), key)
    assert.equal(nobody.keyOf('::1', undefined), '0:0:0:0::/64')
    assert.equal(nobody.keyOf('2001:db8::1', undefined), '2001:db8:0:0::/64')
  })

  test('is one for all whose address is unknown', () => {
    assert.equal(nobody.keyOf(undefined, '192.0.2.7'), 'unknown')
    assert.equal(nobody.keyOf('', undefined), 'unknown')
  })
})

describe('a header that names the client', () => {
  test('is ignored from a peer that the operator has not named', () => {
    for (const named of ['192.0.2.9', '10.0.0.1', '127.0.0.1, 10.0.0.1']) {
      assert.equal(nobody.keyOf('192.0.2.7', named), '192.0.2.7')
      assert.equal(behind.keyOf('192.0.2.7', named), '192.0.2.7')
    }
  })

  test('is read from its end, past the proxies, up to the first address that the client can’t have written', () => {
    const cases = [
      ['192.0.2.7', '192.0.2.7'],
      ['192.0.2.99, 192.0.2.7', '192.0.2.7'],
      ['192.0.2.99,192.0.2.7 , 10.1.2.3', '192.0.2.7'],
      ['10.9.9.9, 192.0.2.7, 2001:db8:aaaa::5, 10.1.2.3', '192.0.2.7'],
      ['192.0.2.7:4711', '192.0.2.7'],
      ['[2001:db8:1:2::9]:4711', '2001:db8:1:2::/64'],
      ['10.1.2.3', '10.1.2.3'],
    ] as const
    for (const [named, key] of cases) assert.equal(behind.keyOf('10.0.0.1', named), key, named)
    assert.equal(behind.keyOf('::1', '192.0.2.7'), '192.0.2.7')
  })

  test('that can’t be parsed leaves the address of the proxy', () => {
    for (const named of [
      '',
      'unknown',
      'for=192.0.2.7',
      '192.0.2.7, nonsense',
      '192.0.2.7,',
      '1.2.3',
      '<script>',
    ]) {
      assert.equal(behind.keyOf('10.0.0.1', named), '10.0.0.1', named)
    }
  })

  test('may be Forwarded, where the operator says so', () => {
    const cases = [
      ['for=192.0.2.7', '192.0.2.7'],
      ['for=192.0.2.99, proto=https;For="192.0.2.7:4711";by=10.0.0.1', '192.0.2.7'],
      ['for="[2001:db8:1:2::9]:4711"', '2001:db8:1:2::/64'],
      ['for=_hidden', '10.0.0.1'],
      ['192.0.2.7', '10.0.0.1'],
    ] as const
    for (const [named, key] of cases) assert.equal(forwarded.keyOf('10.0.0.1', named), key, named)
  })

  test('of any content costs little and throws nothing', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 2000 }), (named) => {
        assert.match(behind.keyOf('10.0.0.1', named), /^[\d.]+$|::\/64$/)
      }),
    )
    assert.equal(behind.keyOf('10.0.0.1', '10.0.0.1,'.repeat(1800)), '10.0.0.1')
    assert.equal(behind.keyOf('10.0.0.1', `192.0.2.7${', 10.0.0.1'.repeat(1800)}`), '10.0.0.1')
  })
})
