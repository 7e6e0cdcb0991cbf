// The command line as an operator uses it: a first start, a later one, tokens beside a running service, and
// the ways in which a start or a stop can fail. The service has its own process, and so have a command that
// prints a secret and one that fails.

import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { version } from '../../server/core/process/version.ts'
import { temporaryFolders } from '../fixtures.ts'
import { waitFor } from '../wait-for.ts'
import { nodeWords, runAlone, runLethe } from './command-line.ts'

const running = new Set<ChildProcess>()
after(() => {
  for (const child of running) child.kill('SIGKILL')
})

const newFolder = temporaryFolders()
const newDataDir = () => join(newFolder(), 'data')

const environment = (dataDir: string, more: Record<string, string> = {}) => ({
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  LETHE_DATA_DIR: dataDir,
  LETHE_PORT: '0',
  ...more,
})

/** Runs a command until it ends. */
const lethe = (env: Record<string, string | undefined>, ...words: string[]) => runLethe(env, words)

/** What starts the service: the program, or Debian's `script`, which gives it a terminal for its output. */
const starters = {
  program: [process.execPath, ...nodeWords, 'serve'],
  terminal: ['script', '-qefc', `exec '${[process.execPath, ...nodeWords].join("' '")}' serve`, '/dev/null'],
}

const ctrlC = '\x03'

/** Starts the service and waits until it listens; `out` is what it has printed so far. */
async function serve(env: Record<string, string | undefined>, starter: keyof typeof starters = 'program') {
  const [program = '', ...words] = starters[starter]
  const child = spawn(program, words, { env, stdio: ['pipe', 'pipe', 'inherit'] })
  running.add(child)
  const ended = once(child, 'exit').then(([code]) => {
    running.delete(child)
    return code as number | null
  })
  const printed = { out: '' }
  const listening = Promise.withResolvers<string>()
  child.stdout.on('data', (chunk: Buffer) => {
    printed.out += chunk.toString()
    const found = /listening at (http:\/\/[\d.:]+)/.exec(printed.out)
    if (found?.[1] !== undefined) listening.resolve(found[1])
  })
  void ended.then((code) => listening.reject(new Error(`the service ended with ${code}`)))
  const address = await listening.promise
  await ready(address)
  return {
    address,
    printed,
    ended,
    stop: (signal: NodeJS.Signals) => child.kill(signal),
    /** As typed at the terminal. */
    type: (keys: string) => child.stdin.write(keys),
  }
}

async function ready(address: string): Promise<void> {
  await waitFor(
    async () => (await fetch(`${address}/readyz`)).status,
    (status) => status === 200,
  )
}

async function me(
  address: string,
  token: string,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const answer = await fetch(`${address}/me`, { headers: { authorization: `Bearer ${token}` } })
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

/** A desktop whose program for opening addresses writes the number of its arguments and the first one. */
function desktop() {
  const folder = newFolder()
  const file = join(folder, 'opened')
  const opener = `#!/bin/sh\nprintf '%s|%s' "$#" "$1" > '${file}.new' && mv '${file}.new' '${file}'\n`
  writeFileSync(join(folder, 'xdg-open'), opener, { mode: 0o755 })
  const env = { PATH: `${folder}:${process.env.PATH}`, DISPLAY: ':0' }
  return { env, opened: () => (existsSync(file) ? readFileSync(file, 'utf8') : null) }
}

/** The link in what a first start has printed. */
const linkIn = (out: string) => /^ {2}(http\S+\/console\/sign-in#code=\S+)\s*$/m.exec(out)?.[1]

test('a first start opens the link that signs in once and prints an owner token; a later one keeps the token and does neither', async () => {
  const { env: ofDesktop, opened } = desktop()
  const env = environment(newDataDir(), ofDesktop)
  const first = await serve(env, 'terminal')
  const link = linkIn(first.printed.out) ?? assert.fail(first.printed.out)
  const isOpened = async () => opened()
  assert.equal(await waitFor(isOpened, (argument) => argument !== null), `1|${link}`)
  const signIn = () =>
    fetch(`${first.address}/session`, {
      method: 'POST',
      headers: { origin: first.address, authorization: `Bearer ${link.replace(/.*#code=/, '')}` },
    })
  assert.deepEqual([(await signIn()).status, (await signIn()).status], [201, 401])
  const token = /shown only once: (\S+)/.exec(first.printed.out)?.[1]
  assert.ok(token)
  assert.match(first.printed.out, /OTEL_EXPORTER_OTLP_ENDPOINT=http/)
  assert.deepEqual((await me(first.address, token)).body.role, 'owner')
  first.type(ctrlC)
  assert.equal(await first.ended, 0)

  const second = await serve(env)
  assert.doesNotMatch(second.printed.out, /shown only once|sign-in/)
  assert.equal((await me(second.address, token)).status, 200)
  second.stop('SIGTERM')
  assert.equal(await second.ended, 0)
})

test('a first start on a used port fails with a sentence and prints no token; the next one prints the token', async () => {
  const dataDir = newDataDir()
  const otherServer = createServer().listen(0, '127.0.0.1')
  await once(otherServer, 'listening')
  const taken = otherServer.address()
  assert.ok(typeof taken === 'object' && taken !== null)
  const refused = await lethe(environment(dataDir, { LETHE_PORT: String(taken.port) }), 'serve')
  otherServer.close()
  assert.equal(refused.code, 1)
  assert.match(refused.err, /LETHE_PORT/)
  const service = await serve(environment(dataDir))
  assert.match(service.printed.out, /shown only once: lethe_owner_/)
  service.stop('SIGTERM')
  await service.ended
})

describe('a service that the variables of an operator create', () => {
  const secret = 'chosen-by-the-operator-0123456789abcdef'
  const { env: ofDesktop, opened } = desktop()
  const dataDir = newDataDir()
  const env = environment(dataDir, {
    ...ofDesktop,
    LETHE_BOOTSTRAP_ORG: 'acme',
    LETHE_BOOTSTRAP_TOKEN: secret,
    // Long enough to be stopped while a request waits for its commit.
    LETHE_COMMIT_DELAY_MS: '400',
  })
  let service: Awaited<ReturnType<typeof serve>>
  before(async () => {
    service = await serve(env)
  })

  test('has the organisation and its owner, whose secret is not printed', async () => {
    const { status, body } = await me(service.address, secret)
    assert.deepEqual([status, body.tenant_id, body.role], [200, 'acme', 'owner'])
    assert.ok(!service.printed.out.includes(secret))
    assert.equal(
      statSync(join(dataDir, 'control.db')).mode & 0o077,
      0,
      'the control plane is for its user only',
    )

    const used = await lethe(environment(newDataDir(), { LETHE_BOOTSTRAP_TOKEN: 'short' }), 'serve')
    assert.equal(used.code, 1)
    assert.match(used.err, /LETHE_BOOTSTRAP_TOKEN/)
    assert.ok(!used.err.includes('short'))
  })

  test('applies at its next request which tokens are created, listed and revoked beside it', async () => {
    const create = ['token', 'create', '--org', 'acme', '--role', 'viewer', '--name', 'wall']
    const made = await runAlone(env, create)
    assert.deepEqual([made.code, (await me(service.address, made.out)).body.role], [0, 'viewer'])

    const list = await lethe(env, 'token', 'list', '--org', 'acme')
    const line = list.out.split('\n').find((text) => text.endsWith('wall'))
    assert.ok(line)
    assert.match(line, / used \d{4}-\d\d-\d\dT/)
    assert.ok(!list.out.includes(made.out), 'the list shows no secret')
    const id = line.split(' ')[0] ?? ''
    assert.equal((await lethe(env, 'token', 'revoke', id, '--org', 'acme')).code, 0)
    assert.equal((await me(service.address, made.out)).status, 401)

    const parent = JSON.parse(
      (await lethe(env, 'token', 'create', '--org', 'acme', '--role', 'admin', '--json')).out,
    )
    const child = await fetch(`${service.address}/tokens`, {
      method: 'POST',
      headers: { authorization: `Bearer ${parent.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'child', role: 'viewer' }),
    })
    const { token: childToken } = (await child.json()) as { token: string }
    assert.match((await lethe(env, 'token', 'list', '--org', 'acme')).out, /\(working descendants: 1\)/)
    const alone = await lethe(env, 'token', 'revoke', parent.id, '--org', 'acme')
    assert.match(alone.out, /descendants that still work: 1; --with-descendants revokes them/)
    assert.equal((await me(service.address, childToken)).status, 200)
    const whole = await lethe(env, 'token', 'revoke', parent.id, '--org', 'acme', '--with-descendants')
    assert.match(whole.out, /descendants revoked too: 1$/)
    assert.equal((await me(service.address, childToken)).status, 401)

    const owner = await lethe(env, 'org', 'create', 'globex')
    assert.equal((await me(service.address, owner.out)).body.tenant_id, 'globex')
    const organisations = JSON.parse((await lethe(env, 'org', 'list', '--json')).out)
    assert.deepEqual(
      organisations.items.map((one: { tenant_id: string; name: string }) => [one.tenant_id, one.name]),
      [
        ['acme', 'acme'],
        ['globex', 'globex'],
      ],
    )
    assert.match((await lethe(env, 'org', 'list')).out, /^acme +founded \S+Z {2}acme\nglobex /)
    const asJson = JSON.parse((await lethe(env, 'token', 'list', '--org', 'acme', '--json')).out)
    assert.deepEqual(asJson.items.find((one: { id: string }) => one.id === id).role, 'viewer')
    const again = await lethe(env, 'org', 'create', 'globex')
    assert.deepEqual([again.code, again.err], [1, 'lethe: The organisation globex exists.'])
    const foreign = await lethe(env, 'token', 'revoke', id, '--org', 'globex')
    assert.equal(foreign.code, 1)
    assert.match(foreign.err, /has no token/)
  })

  test('continues when a second service on the same folder is refused with a sentence', async () => {
    const second = await lethe(env, 'serve')
    assert.equal(second.code, 1)
    assert.match(second.err, /Another process uses the data folder/)
    assert.equal((await fetch(`${service.address}/healthz`)).status, 200)
  })

  test('drains after one Ctrl-C that arrives twice: the request in progress gets its response', async () => {
    const logRecords = [{ timeUnixNano: '1767571200000000000', body: { stringValue: 'last words' } }]
    const sending = fetch(`${service.address}/v1/logs`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ resourceLogs: [{ scopeLogs: [{ logRecords }] }] }),
    })
    const metrics = async () => (await fetch(`${service.address}/metrics`)).text()
    await waitFor(metrics, (text) => /lethe_ingest_buffered_bytes [1-9]/.test(text))
    service.stop('SIGINT')
    service.stop('SIGINT')
    assert.equal((await sending).status, 200)
    assert.equal(await service.ended, 0)
  })

  test('printed the link without a terminal, and opened nothing', () => {
    assert.ok(linkIn(service.printed.out) !== undefined)
    assert.equal(opened(), null)
  })
})

test('the command of a clone prints its version through a link, from any folder and before the installation', async () => {
  const root = fileURLToPath(new URL('../../', import.meta.url))
  const clone = newFolder()
  for (const path of ['lethe', 'package.json', 'scripts']) {
    cpSync(join(root, path), join(clone, path), { recursive: true })
  }
  symlinkSync(join(clone, 'lethe'), join(clone, 'link'))
  for (const name of ['lethe', 'link']) {
    const { stdout } = await promisify(execFile)(join(clone, name), ['--version'], { cwd: '/' })
    assert.equal(stdout.trim(), version)
  }
  assert.equal(existsSync(join(clone, 'node_modules')), false)
})

test('output that can’t be written is a sentence and a failure', async () => {
  const words = [process.execPath, ...nodeWords, 'completion', 'bash'].map((word) => `'${word}'`).join(' ')
  const ended = await promisify(execFile)('sh', ['-c', `${words} > /dev/full`]).catch((error) => error)
  assert.deepEqual([ended.code, ended.stderr.split('\n').length], [1, 2], ended.stderr)
  assert.match(ended.stderr, /^lethe: the output can't be written: ENOSPC/)
})

test('a command does not create a mistyped data folder', async () => {
  const refused = await runAlone(environment(newDataDir()), ['token', 'list', '--org', 'acme'])
  assert.equal(refused.code, 1)
  assert.match(refused.err, /LETHE_DATA_DIR/)
})
