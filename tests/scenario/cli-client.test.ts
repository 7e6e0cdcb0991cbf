// Commands that are clients of a service: what they request over HTTP with a token, what they show before
// they erase, how they follow an erasure, and the sentence and exit code of every way in which that can fail.
// They know only the address of the service. Those of a terminal, one that is watched while others run, and
// one that fails have processes of their own.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { after, afterEach, before, test } from 'node:test'
import { DeletionRequest } from '../../contract/deletion/requests.ts'
import { temporaryFolder } from '../fixtures.ts'
import { waitFor } from '../wait-for.ts'
import { type Ended, nodeWords, runAlone, runLethe } from './command-line.ts'
import { Barrier, instant, minute } from './erasing.ts'
import { type Service, startService, type Tenant, tenants, type Who } from './service.ts'
import { readSample, sendSample } from './telemetry.ts'

let service: Service
let home: string
const barrier = new Barrier()

before(async () => {
  home = temporaryFolder()
  service = await startService({
    failpoint: barrier.failpoint,
  })
  for (const tenant of tenants) await sendSample(service, `${tenant}/ingest`, [0, 1, 2, 3, 4].map(minute))
})
after(async () => {
  await service.stop()
  rmSync(home, { recursive: true, force: true })
})
afterEach(() => barrier.open())

const environment = (as: Who = 'acme/owner'): Record<string, string | undefined> => ({
  PATH: process.env.PATH,
  HOME: home,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  LETHE_URL: service.address,
  LETHE_TOKEN: service.secretOf(as),
})

function lethe(words: string, more: Record<string, string | undefined> = {}): Promise<Ended> {
  return runLethe({ ...environment(), ...more }, words.split(' '))
}

async function storedRows(tenant: Tenant): Promise<number> {
  return (await readSample(service, `${tenant}/owner`)).storedRows
}

test('a range is previewed, erased only with the confirmation, and followed until it ends; the neighbour keeps its rows', async () => {
  const range = `erase range --until ${instant(2)}`
  const shown = await lethe(`${range} --dry-run`)
  assert.equal(shown.code, 0, shown.err)
  assert.match(shown.out, /would erase telemetry of acme: everything before 2026-01-05T00:02:00Z/)
  assert.match(shown.out, /^ {2}logs +2 .*2026-01-05T00:00:00Z {2}2026-01-05T00:01:00Z {2}shop$/m)
  assert.match(shown.out, /^ {2}total +6 /m)
  assert.match(shown.out, /Nothing is erased/)

  const future = await lethe('erase range --until 2149-01-01T00:00:00Z --dry-run')
  assert.match(future.out, /^ {2}warning: \S/m, 'a mistyped year is reported before the question')

  const nobody = await lethe(range)
  assert.deepEqual([nobody.code, /use --confirm acme/.test(nobody.err)], [1, true], nobody.err)
  const wrong = await lethe(`${range} --confirm globex`)
  assert.equal(wrong.code, 1)
  assert.match(wrong.err, /--confirm \(body\.confirm\): /)
  assert.equal(await storedRows('acme'), 15, 'nothing has been erased so far')

  const done = await lethe(`${range} --confirm acme --reason bad_data --wait --json`)
  assert.equal(done.code, 0, done.err)
  const record = JSON.parse(done.out)
  assert.deepEqual([record.status, record.reason, record.detail.rows_erased], ['completed', 'bad_data', 6])
  assert.match(done.err, /would erase telemetry of acme/, 'the preview is on standard error')
  assert.deepEqual([await storedRows('acme'), await storedRows('globex')], [9, 15])

  const got = await lethe(`deletions get ${record.request_id}`)
  assert.match(got.out, /\[█{30}\] 100 % {2}completed\n.*\n {2}erased +6 rows, /)
  for (const clock of ['hidden', 'removed', 'verified']) {
    assert.match(got.out, new RegExp(`^ {2}${clock} +\\d{4}-.*Z {2}\\(.* after it was asked for\\)$`, 'm'))
  }
  const listed = await lethe('deletions list --json --limit 1')
  assert.deepEqual(
    JSON.parse(listed.out).items.map((one: { request_id: string }) => one.request_id),
    [record.request_id],
  )
})

test('only what was previewed is erased: a stale preview erases nothing', async () => {
  const range = `erase range --from ${instant(10)} --until ${instant(20)}`
  const { id: previewId } = JSON.parse((await lethe(`${range} --dry-run --json`)).out)
  // More than a preview of any size tolerates.
  const late = Array.from({ length: 400 }, (_, i) => minute(11) + BigInt(i))
  await sendSample(service, 'acme/ingest', late)
  const before = await storedRows('acme')
  const stale = await lethe(`${range} --confirm acme --preview ${previewId}`)
  assert.equal(stale.code, 1)
  assert.match(
    stale.err,
    /^ {2}total +1,2\d\d .*nothing is erased\. To erase this, plus or minus 1,000 rows/ms,
  )
  assert.equal(await storedRows('acme'), before)
  const [, current = ''] = /--preview (prv_\w+)/.exec(stale.err) ?? []
  assert.notEqual(current, previewId)
  const done = await lethe(`${range} --confirm acme --preview ${current} --wait`)
  assert.equal(done.code, 0, done.err)
  assert.equal(await storedRows('acme'), 9)
})

test('a person in a terminal is asked for the tenant_id, and anything else erases nothing', async () => {
  await sendSample(service, 'acme/ingest', [30, 31].map(minute))
  const words = [...nodeWords, 'erase', 'range', '--from', instant(30), '--until', instant(40), '--wait']
  // `script` gives the command its own terminal.
  const type = (typed: string) =>
    new Promise<string>((resolve) => {
      const line = [process.execPath, ...words].map((word) => `'${word}'`).join(' ')
      const child = execFile('script', ['-qec', line, '/dev/null'], { env: environment() }, (_, stdout) =>
        resolve(stdout),
      )
      let isAsked = false
      child.stdout?.on('data', (chunk: string) => {
        if (isAsked || !chunk.includes('Type acme')) return
        isAsked = true
        child.stdin?.write(`${typed}\n`)
      })
    })
  const before = await storedRows('acme')
  assert.match(await type('acme please'), /That is not the tenant_id; nothing is erased/)
  assert.equal(await storedRows('acme'), before)
  const erased = await type('acme')
  assert.match(erased, /100 % {2}completed/)
  assert.ok(erased.includes('\u001b['), 'a terminal shows one picture that is redrawn')
  assert.equal(await storedRows('acme'), before - 6)
})

test('a watched erasure shows each change as a line, and one that is not completed exits 4', async () => {
  await sendSample(service, 'acme/ingest', [50, 51].map(minute))
  barrier.close()
  const range = `erase range --from ${instant(50)} --until ${instant(60)} --confirm acme --json`
  const asked = JSON.parse((await lethe(range)).out)
  const watching = runAlone(environment(), ['deletions', 'watch', asked.request_id])
  const asJson = lethe(`deletions watch ${asked.request_id} --json`)
  const shown = () => service.read(`/usage/storage/deletions/${asked.request_id}`, DeletionRequest)
  await waitFor(shown, ({ status }) => status === 'running')
  barrier.open()
  const { code, out } = await watching
  assert.equal(code, 0)
  const lines = out.split('\n')
  assert.match(lines.at(-1) ?? '', /completed {2}100 % .* verified \d{4}-/)
  for (const line of lines) assert.ok(line.startsWith(asked.request_id), line)
  const states = (await asJson).out.split('\n').map((line) => JSON.parse(line).status)
  assert.equal(states.at(-1), 'completed')

  const later = `erase range --until ${instant(100)} --delay 24h --confirm acme --json`
  const scheduled = JSON.parse((await lethe(later)).out)
  assert.equal(scheduled.status, 'scheduled')
  const cancelled = await lethe(`deletions cancel ${scheduled.request_id}`)
  assert.match(cancelled.out, /cancelled/)
  const ended = await lethe(`deletions watch ${scheduled.request_id}`)
  assert.deepEqual(
    [ended.code, ended.err],
    [4, `lethe: The deletion ${scheduled.request_id} ended as cancelled.`],
  )
  const file = join(home, 'certificate.json')
  const early = await lethe(`deletions certificate ${scheduled.request_id} -o ${file}`)
  assert.deepEqual([early.code, existsSync(file)], [1, false], 'a refusal is not saved as a certificate')
  assert.match(early.err, /409 not_verified/)
  assert.equal((await lethe(`deletions certificate ${asked.request_id} -o ${file}`)).code, 0)
  assert.equal(JSON.parse(readFileSync(file, 'utf8')).certificate.request.request_id, asked.request_id)
  assert.match((await lethe(`deletions verify ${asked.request_id}`)).out, /Nothing that it selects is left/)
})

test('usage, anomalies and incidents are printed for people and for programs', async () => {
  const usage = await lethe('usage')
  assert.match(usage.out, /^acme stores\n.*rows +bytes/)
  assert.match(usage.out, /It may send any number of rows a second and any number of bytes a day/)
  const { ingest, storage } = JSON.parse((await lethe('usage --json')).out)
  assert.deepEqual([ingest.tenant_id, storage.tenant_id], ['acme', 'acme'])
  assert.equal((await lethe('anomalies --open --from -24h')).out, 'No anomalies.')
  assert.deepEqual(JSON.parse((await lethe('anomalies --json')).out), { items: [] })
  const unknown = await lethe('anomalies get nothing')
  assert.deepEqual([unknown.code, /404 not_found/.test(unknown.err)], [1, true])
  assert.equal((await lethe('incidents --state open --from -24h')).out, 'No incidents.')
  assert.deepEqual(JSON.parse((await lethe('incidents --json')).out), { items: [] })
  assert.match((await lethe('incidents show nothing')).err, /404 not_found/)
  assert.match((await lethe('incidents --from yesterday')).err, /--from \(query\.range_start\)/)
})

test('a refusal names the option, the location and the correction, and a missing role is reported', async () => {
  const naive = await lethe('erase range --until 2026-01-05T00:02:00 --confirm acme')
  assert.equal(naive.code, 1)
  assert.match(naive.err, /--until \(body\.range_end\): .*offset.*\(given: 2026-01-05T00:02:00\)/)
  const viewer = await lethe('erase all --dry-run', { LETHE_TOKEN: service.secretOf('acme/viewer') })
  assert.match(viewer.err, /403 role_not_permitted/)
  const delay = await lethe('erase all --delay soon --confirm acme')
  assert.match(delay.err, /--delay must be/)
})

test('for a service that is away, elsewhere or another program, the error says what to do and the exit code is 3', async () => {
  const stranger = createServer((request, response) => {
    if (request.url === '/me') response.writeHead(302, { location: 'https://elsewhere.example/' }).end()
    else response.end('<h1>hello</h1>')
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => stranger.once('listening', resolve))
  const { port } = stranger.address() as AddressInfo
  const there = `http://127.0.0.1:${port}`
  const html = await lethe('usage', { LETHE_URL: there })
  assert.deepEqual([html.code, /form that this version doesn't know/.test(html.err)], [3, true], html.err)
  const moved = await lethe('erase all --dry-run', { LETHE_URL: there })
  assert.deepEqual([moved.code, /redirects to https:\/\/elsewhere/.test(moved.err)], [3, true], moved.err)
  await new Promise((resolve) => stranger.close(resolve))
  const gone = await runAlone({ ...environment(), LETHE_URL: there }, ['usage'])
  assert.equal(gone.code, 3)
  assert.match(gone.err, /nothing listens there. Start the service \(lethe serve\), or set LETHE_URL/)
  for (const { err } of [html, moved, gone]) assert.ok(!err.includes(service.secretOf('acme/owner')))
})

test('address and token may be in a file that only its user can read, and the token is sent nowhere else', async () => {
  const file = join(home, '.config', 'lethe', 'config.json')
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, JSON.stringify({ url: service.address, token: service.secretOf('acme/viewer') }))
  chmodSync(file, 0o600)
  const fromFile = { LETHE_URL: undefined, LETHE_TOKEN: undefined }
  assert.match((await lethe('usage', fromFile)).out, /^acme stores/)
  const elsewhere = await lethe('usage', { LETHE_TOKEN: undefined, LETHE_URL: 'http://127.0.0.1:9' })
  assert.match(elsewhere.err, /is for http:.*, and LETHE_URL is http:\/\/127\.0\.0\.1:9: set LETHE_TOKEN/)
  chmodSync(file, 0o640)
  const open = await lethe('usage', fromFile)
  assert.deepEqual([open.code, /other users can read it: chmod 600/.test(open.err)], [1, true])
  rmSync(file)
  const none = await lethe('usage', fromFile)
  assert.match(none.err, /There is no access token. Set LETHE_TOKEN/)
})
