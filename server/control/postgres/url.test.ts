// The address of a PostgreSQL server: what it means, and that no refusal repeats the password in it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AddressProblem } from '../address-problem.ts'
import { nameOf, readAddress } from './url.ts'

const remote = 'postgres://ada:s3cr%40t@db.example:6543/lethe'

test('an address has host, port, user, password and database, with encoded characters decoded', () => {
  const { ssl, ...server } = readAddress(remote)
  const expected = { host: 'db.example', port: 6543, user: 'ada', password: 's3cr@t', database: 'lethe' }
  assert.deepEqual(server, expected)
  assert.equal(readAddress('postgresql://ada@[::1]/lethe').port, 5432)
  assert.equal(readAddress('postgres://ada@localhost/lethe?host=/run/postgresql').host, '/run/postgresql')
})

test('the certificate and the name of a remote server are checked unless the address requires less', () => {
  assert.equal(readAddress('postgres://ada@127.0.0.1/lethe').ssl, false)
  assert.deepEqual(readAddress(remote).ssl, { rejectUnauthorized: true })
  assert.deepEqual(readAddress(`${remote}?sslmode=require`).ssl, { rejectUnauthorized: false })
  assert.equal(readAddress(`${remote}?sslmode=disable`).ssl, false)
  const { ssl } = readAddress(`${remote}?sslmode=verify-ca`)
  assert.equal(ssl !== false && ssl.rejectUnauthorized, true)
})

test('a wrong address is refused with what to change, and without its password', () => {
  const wrong = [
    'postgres://',
    'postgres://ada:s3cr@/lethe',
    'postgres://ada:s3cr@db.example',
    'postgres://:s3cr@db.example/lethe',
    'postgres://ada:s3cr%@db.example/lethe',
    'postgres://ada:s3cr@db.example:port/lethe',
    'postgres://ada:s3cr@one.example,two.example/lethe',
    'postgres://ada:s3cr@db.example/lethe?sslmode=prefer',
    'postgres://ada:s3cr@db.example/lethe?sslmode=allow',
    'postgres://ada:s3cr@db.example/lethe?pooling=on',
    'postgres://ada:s3cr@db.example/lethe?sslrootcert=/nowhere.pem',
  ]
  for (const address of wrong) {
    assert.throws(
      () => readAddress(address),
      (error) => error instanceof AddressProblem && !error.message.includes('s3cr'),
      address,
    )
  }
  assert.ok(!nameOf(readAddress(remote)).includes('s3cr'))
  const several =
    'postgres://ada:s3cr@one.example:5432,two.example:5432/lethe?target_session_attrs=read-write'
  assert.throws(() => readAddress(several), { message: /^names several hosts; name one that always leads/ })
  assert.equal(readAddress('postgres://ada:s3,cr@db.example/lethe').password, 's3,cr')
})
