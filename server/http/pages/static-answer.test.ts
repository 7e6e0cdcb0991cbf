// A body that is the same for everybody is made once: requested with and without compression, again with its
// tag, and by many at once.

import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import pino from 'pino'
import { z } from 'zod'
import { openApiDocument } from '../../../contract/openapi/document.ts'
import { pageOperations } from '../../../contract/operations/pages.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { byAccessToken } from '../authentication.ts'
import { testOperation } from '../operation-fixture.ts'
import { serve } from '../serve.ts'
import { createHttp } from '../server.ts'
import { addFrontPage } from './front-page.ts'
import { openApiAnswer } from './openapi.ts'
import { addReferencePage } from './reference-page.ts'
import { StaticAnswer, takesGzip } from './static-answer.ts'

const http = createHttp({
  clock: new ManualClock(1_763_717_400_000),
  logger: pino({ level: 'silent' }),
  authenticate: byAccessToken(async () => null),
  isReady: () => true,
})
const things = testOperation({ path: '/things', result: z.object({ name: z.string() }) })
let generated = 0
const document = new StaticAnswer({
  type: 'application/json',
  make: () => {
    generated += 1
    return JSON.stringify(openApiDocument([pageOperations.front, things], '9'))
  },
})
addReferencePage(http, { document, canTry: true })
addFrontPage(http, '9', true)
serve(http, things, { handle: async () => ({ body: { name: 'thing' } }) })
await http.ready()
after(() => http.close())

const files = ['/openapi.json', '/docs/scalar.js', '/docs/start.js', '/']

describe('a static body', () => {
  test('is generated once, however often it is requested', async () => {
    assert.equal(generated, 0, 'nobody has asked for it')
    const answers = await Promise.all(Array.from({ length: 50 }, () => http.inject('/openapi.json')))
    assert.equal(generated, 1)
    assert.deepEqual(new Set(answers.map(({ statusCode }) => statusCode)), new Set([200]))
    assert.deepEqual(Object.keys(answers[0]?.json().paths), ['/', '/things'])
  })

  for (const url of files) {
    test(`${url} is compressed for clients that accept gzip, and not sent again to clients that have it`, async () => {
      const plain = await http.inject(url)
      const packed = await http.inject({ url, headers: { 'accept-encoding': 'br;q=1, gzip;q=0.5' } })
      assert.deepEqual(gunzipSync(packed.rawPayload), plain.rawPayload)
      assert.equal(plain.headers['content-encoding'], undefined)
      assert.equal(packed.headers['content-encoding'], 'gzip')
      assert.notEqual(plain.headers.etag, packed.headers.etag)
      for (const { headers } of [plain, packed]) {
        assert.match(String(headers.vary), /accept-encoding$/)
        assert.equal(headers['cache-control'], 'public, no-cache')
        const tag = String(headers.etag)
        for (const sentTag of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
          const again = await http.inject({ url, headers: { 'if-none-match': sentTag } })
          assert.deepEqual([again.statusCode, again.body], [304, ''], sentTag)
          assert.match(String(again.headers.etag), /^"[\w-]{22}(?:-gzip)?"$/)
        }
      }
      const other = await http.inject({ url, headers: { 'if-none-match': '"other"' } })
      assert.equal(other.statusCode, 200)
    })
  }

  test('is plain for clients that do not accept gzip', () => {
    for (const refused of [undefined, '', 'identity', 'br', 'gzip;q=0', '*;q=0', 'gzip;q=x', 'gzip;q=0, *']) {
      assert.equal(takesGzip(refused), false, String(refused))
    }
    for (const taken of ['gzip', 'GZIP', 'deflate, gzip;q=1.0', '*', 'br;q=0,*;q=0.1']) {
      assert.equal(takesGzip(taken), true, taken)
    }
  })
})

describe('the reference page', () => {
  test('runs only files of this service, and accepts style sheets only with a nonce that nobody can guess', async () => {
    const nonces = new Set<string>()
    for (const url of ['/docs', '/docs/']) {
      const { headers, body } = await http.inject(url)
      const policy = String(headers['content-security-policy'])
      assert.doesNotMatch(policy, /unsafe|https?:|\*/)
      assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'nonce-[\w+/]{22}=='; /)
      const nonce = /'nonce-([^']+)'/.exec(policy)?.[1] ?? assert.fail(policy)
      nonces.add(nonce)
      assert.ok(body.includes(`<meta property="csp-nonce" content="${nonce}">`))
      const scripts = [...body.matchAll(/<script([^>]*)>([^<]*)<\/script>/g)].map(([, at, inside]) => [
        at,
        inside,
      ])
      assert.deepEqual(scripts, [
        [' src="/docs/start.js"', ''],
        [' src="/docs/scalar.js"', ''],
      ])
      assert.doesNotMatch(body, /<style|style=|\son\w+=|https?:/)
    }
    assert.equal(nonces.size, 2)
  })

  test('offers to try an operation only where the operations are served', async () => {
    const other = createHttp({
      clock: new ManualClock(0),
      logger: pino({ level: 'silent' }),
      authenticate: byAccessToken(async () => null),
      isReady: () => true,
    })
    addReferencePage(other, { document: openApiAnswer([], '9'), canTry: false })
    assert.match((await other.inject('/docs/start.js')).body, /"hideTestRequestButton":true/)
    assert.match((await http.inject('/docs/start.js')).body, /"hideTestRequestButton":false/)
    await other.close()
  })
})
