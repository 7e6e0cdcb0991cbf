// Where a client finds address and token: the environment takes precedence over the file, a file that others
// can read is refused, and no error contains a secret.

import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { configPath, isUnencrypted, readConnection } from './settings.ts'
import { bytesText, durationText, parseDuration, table } from './text.ts'

const folder = mkdtempSync(join(tmpdir(), 'lethe-test-'))
const file = join(folder, 'config.json')
after(() => rmSync(folder, { recursive: true, force: true }))

function write(content: string, mode = 0o600): void {
  writeFileSync(file, content)
  chmodSync(file, mode)
}

function refusalOf(env: Record<string, string>): string {
  try {
    readConnection({ LETHE_CONFIG: file, ...env })
  } catch (error) {
    assert.ok(error instanceof Error)
    assert.doesNotMatch(error.message, /hush/, 'the error contains no secret')
    return error.message
  }
  return assert.fail('The settings were accepted.')
}

test('the environment takes precedence over the file, and the token of the file is sent only to the address of the file', () => {
  write('{"url": "https://lethe.example/telemetry/", "token": "hush"}')
  const env = { LETHE_CONFIG: file }
  assert.deepEqual(readConnection(env), { url: 'https://lethe.example/telemetry', token: 'hush' })
  assert.equal(readConnection({ ...env, LETHE_TOKEN: 'other' }).token, 'other')
  assert.match(refusalOf({ LETHE_URL: 'https://evil.example' }), /set LETHE_TOKEN for that address/)
  const own = { ...env, LETHE_URL: 'http://127.0.0.1:9090/', LETHE_TOKEN: 'other' }
  assert.deepEqual(readConnection(own), { url: 'http://127.0.0.1:9090', token: 'other' })
})

test('a file that others can read, that is not JSON, or that has other fields is refused with a correction', () => {
  write('{"token": "hush"}', 0o644)
  assert.match(refusalOf({}), /chmod 600/)
  write('{"url": "http://127.0.0.1:8080"}', 0o644)
  assert.match(refusalOf({}), /There is no access token/)
  for (const content of ['{"token": "hush"', '{"tokn": "hush"}', '["hush"]']) {
    write(content)
    assert.match(refusalOf({}), /must be a JSON object of "url" and "token"/)
  }
  rmSync(file)
  assert.match(refusalOf({}), /can't be read/)
})

test('an address with a password, an invalid address, and a token with a line break are refused without being shown', () => {
  write('{}')
  const token = { LETHE_TOKEN: 'hush' }
  assert.match(
    refusalOf({ ...token, LETHE_URL: 'https://ada:hush@lethe.example' }),
    /must have no user, password/,
  )
  assert.match(refusalOf({ ...token, LETHE_URL: 'lethe.example:8080' }), /must be a URL such as/)
  assert.match(refusalOf({ LETHE_TOKEN: 'hush\n' }), /such as a line break/)
})

test('the file is in the folder of XDG, and sending a token unencrypted to another machine is detected', () => {
  assert.equal(configPath({ XDG_CONFIG_HOME: '/srv/xdg' }), '/srv/xdg/lethe/config.json')
  const inTheClear = (url: string) => isUnencrypted({ url, token: 't' })
  assert.deepEqual(
    ['http://lethe.example', 'https://lethe.example', 'http://127.0.0.1:8080', 'http://[::1]:1'].map(
      inTheClear,
    ),
    [true, false, false, false],
  )
})

test('figures are formatted for people, and durations are parsed as people write them', () => {
  assert.deepEqual([0, 999, 1000, 999_999, 5_600_000].map(bytesText), [
    '0 B',
    '999 B',
    '1.00 kB',
    '1.00 MB',
    '5.60 MB',
  ])
  assert.deepEqual([340, 12_500, 200_000, 7_500_000, 190_000_000].map(durationText), [
    '340 ms',
    '12.5 s',
    '3 min 20 s',
    '2 h 5 min',
    '2 d 4 h',
  ])
  assert.deepEqual(['90m', '24h', '7d', '30s', '5', 'h', '-1h', '1.5h'].map(parseDuration), [
    ...[5_400_000, 86_400_000, 604_800_000, 30_000],
    ...[null, null, null, null],
  ])
  assert.deepEqual(
    table(
      [
        ['a', 'rows'],
        ['bcd', '7'],
      ],
      [1],
    ),
    ['a    rows', 'bcd     7'],
  )
})
