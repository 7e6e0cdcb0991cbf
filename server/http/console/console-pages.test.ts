// The console as the server sends it, with a build of two files: what a browser may run and store, and which
// files cannot be reached.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import pino from 'pino'
import { ManualClock } from '../../core/manual-clock.ts'
import { byAccessToken } from '../authentication.ts'
import { createHttp } from '../server.ts'
import { ConsolePages } from './console-pages.ts'

const page = '<meta property="csp-nonce" nonce="__NONCE__" /><script src="/console/assets/a-1.js"></script>'
const files = new Map([
  ['index.html', Buffer.from(page)],
  ['assets/a-1.js', Buffer.from('run()')],
  ['secret.txt', Buffer.from('not for anybody')],
])

function open(build: () => Promise<typeof files>) {
  const http = createHttp({
    clock: new ManualClock(1_763_717_400_000),
    logger: pino({ level: 'silent' }),
    authenticate: byAccessToken(async () => null),
    isReady: () => true,
  })
  new ConsolePages(build).addRoutes(http)
  after(() => http.close())
  return http
}

let builds = 0
const http = open(async () => {
  builds += 1
  return files
})

test('every address of the console is its page, which is never stored', async () => {
  for (const url of ['/console', '/console/', '/console/acme/storage?from=now-7d']) {
    const { body, headers, statusCode } = await http.inject(url)
    assert.deepEqual([statusCode, headers['cache-control']], [200, 'no-store'], url)
    assert.match(body, /a-1\.js/)
  }
  assert.equal(builds, 1)
})

test('the page runs only files of this service, and each response has a nonce of its own for styles', async () => {
  const nonces = new Set<string>()
  for (let i = 0; i < 2; i++) {
    const { body, headers } = await http.inject('/console')
    const policy = String(headers['content-security-policy'])
    const nonce = /style-src 'self' 'nonce-([\w+/=]+)'/.exec(policy)?.[1] ?? assert.fail(policy)
    assert.ok(body.includes(`nonce="${nonce}"`))
    assert.match(policy, /^default-src 'none'; script-src 'self';.*frame-ancestors 'none'$/)
    nonces.add(nonce)
  }
  assert.equal(nonces.size, 2)
})

test('a file is compressed and may be cached without a limit, because its name has the hash of its content', async () => {
  const { headers, rawPayload } = await http.inject({
    url: '/console/assets/a-1.js',
    headers: { 'accept-encoding': 'gzip' },
  })
  assert.equal(gunzipSync(rawPayload).toString(), 'run()')
  assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable')
  assert.match(String(headers['content-type']), /^text\/javascript/)
})

test('only files of the build are served, by their exact names', async () => {
  for (const name of ['b-2.js', '..%2fsecret.txt', '..%2findex.html', '%2e%2e/secret.txt', 'A-1.js']) {
    const { body, statusCode } = await http.inject(`/console/assets/${name}`)
    assert.doesNotMatch(body, /not for anybody/)
    if (statusCode !== 404) assert.match(body, /csp-nonce/, 'the page, for an address of the console')
  }
})

test('a failed build is reported without its output, and everything else works', async () => {
  const failing = open(async () => {
    throw new Error('at /srv/lethe/console: out of memory')
  })
  const { body, statusCode } = await failing.inject('/console')
  assert.equal(statusCode, 500)
  assert.match(body, /could not be built/)
  assert.doesNotMatch(body, /srv|memory/)
})
