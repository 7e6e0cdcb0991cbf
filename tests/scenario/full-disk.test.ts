// The service on a full disk, a real one of some megabytes: what is refused and how, what is still accepted,
// that an erasure frees the disk or waits and never reports something false, and how a service starts, logs
// and ends there.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { openSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { DeletionRequest } from '../../contract/deletion/requests.ts'
import { StorageUsage } from '../../contract/organisation/usage.ts'
import { temporaryFolder } from '../fixtures.ts'
import { openBreakingDisk, openSmallDisk, whyNoBreakingDisk, whyNoSmallDisk } from '../small-disk.ts'
import { waitFor } from '../wait-for.ts'
import { nodeEnvironment, nodeFlags } from './command-line.ts'
import { assertRefused, type Service, startService, type Who, waitUntilCompleted } from './service.ts'
import { minuteNs, mondayNs, sampleExport } from './telemetry.ts'

const skip = whyNoSmallDisk() ?? false
const mebibyte = 1024 * 1024
const weekNs = 7n * 24n * 60n * minuteNs

const deletions = '/usage/storage/deletions'
const instant = (ns: bigint) => new Date(Number(ns / 1_000_000n)).toISOString()

/** Records that hardly compress, a minute apart; about a kilobyte each. */
function bulkyLogs(fromNs: bigint, count: number): object {
  const logRecords = Array.from({ length: count }, (_, i) => ({
    timeUnixNano: String(fromNs + BigInt(i) * minuteNs),
    body: { stringValue: randomBytes(750).toString('base64') },
  }))
  return { resourceLogs: [{ resource: {}, scopeLogs: [{ logRecords }] }] }
}

async function send(service: Service, as: Who, json: object): Promise<void> {
  const answer = await service.send('POST', '/v1/logs', { as, json })
  assert.equal(answer.status, 200, answer.text)
}

async function storedLogs(service: Service, as: Who): Promise<number> {
  const { signals } = await service.read('/usage/storage', StorageUsage, as)
  return signals.find(({ signal }) => signal === 'logs')?.rows ?? 0
}

describe('a running service', { skip }, () => {
  const disk = skip === false ? openSmallDisk(128 * mebibyte) : null
  let standsAt: string | null = null
  let goOn = () => {}
  const opened =
    disk === null
      ? null
      : startService({
          settings: { LETHE_DATA_DIR: disk.folder, LETHE_RESERVE_MB: '2' },
          async failpoint(name) {
            if (name !== standsAt) return
            standsAt = null
            await new Promise<void>((resolve) => {
              goOn = resolve
            })
          },
        })
  after(async () => {
    await (await opened)?.stop()
    disk?.remove()
  })
  const parts = async () => {
    if (disk === null || opened === null) assert.fail('the disk is missing')
    return { disk, service: await opened }
  }

  test('telemetry is refused so that clients retry, and an erasure is accepted that frees the disk', async () => {
    const { disk, service } = await parts()
    for (const as of ['acme/owner', 'globex/owner'] as const) {
      for (let at = 0; at < 4; at++) await send(service, as, bulkyLogs(mondayNs + BigInt(at) * weekNs, 1500))
    }
    disk.fill()
    // What may still be accepted is in a week that is not erased.
    const refused = await waitFor(
      () => service.send('POST', '/v1/logs', { json: bulkyLogs(mondayNs + 3n * weekNs, 1000) }),
      ({ status }) => status !== 200,
    )
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '10'])
    const unready = await service.send('GET', '/readyz')
    assert.deepEqual([unready.status, JSON.parse(unready.text).status], [503, 'disk_full'])
    assert.match(JSON.parse(unready.text).detail, /The disk is full/)
    assert.match((await service.send('GET', '/metrics')).text, /^lethe_disk_writable 0$/m)
    const before = await storedLogs(service, 'acme/owner')
    assert.ok(before >= 6000, 'stored telemetry can be read')

    const hold = await service.send('POST', '/usage/storage/holds', {
      json: {
        case_ref: 'case 7',
        range_start: instant(mondayNs + 3n * weekNs),
        range_end: instant(mondayNs + 4n * weekNs),
      },
    })
    assert.equal(hold.status, 201, hold.text)
    const asked = await service.send('POST', deletions, {
      json: { scope: 'range', confirm: 'acme', range_end: instant(mondayNs + 3n * weekNs) },
    })
    assert.equal(asked.status, 202, asked.text)
    await waitUntilCompleted(service, JSON.parse(asked.text).request_id, 'acme/owner')
    assert.equal(await storedLogs(service, 'acme/owner'), before - 4500)
    assert.equal(await storedLogs(service, 'globex/owner'), 6000)
    await waitFor(
      () => service.send('GET', '/readyz'),
      ({ status }) => status === 200,
    )
    await send(service, 'acme/owner', sampleExport('logs', [mondayNs + 3n * weekNs]))
    disk.free()
  })

  test('an erasure accepted before the disk filled waits with the reason, hidden, and completes once there is room', async () => {
    const { disk, service } = await parts()
    const inWeek = mondayNs + 20n * weekNs
    for (const as of ['acme/owner', 'globex/owner'] as const) {
      for (let at = 0; at < 4; at++)
        await send(service, as, bulkyLogs(inWeek + BigInt(at) * 1000n * minuteNs, 1000))
    }
    const before = await storedLogs(service, 'acme/owner')
    standsAt = 'planned'
    const asked = await service.send('POST', deletions, {
      json: {
        scope: 'range',
        confirm: 'acme',
        range_start: instant(inWeek),
        range_end: instant(inWeek + 100n * minuteNs),
      },
    })
    assert.equal(asked.status, 202, asked.text)
    const { request_id: id } = JSON.parse(asked.text)
    await waitFor(
      async () => standsAt,
      (left) => left === null,
    )
    disk.fill()
    goOn()
    const path = `${deletions}/${id}`
    const waiting = await waitFor(
      () => service.read(path, DeletionRequest),
      ({ detail, status }) => status === 'incomplete' && /disk is full/.test(String(detail.blocked_reason)),
    )
    assert.equal(waiting.finished_at, null)
    assertRefused(await service.send('GET', `${path}/certificate`), 409, 'not_verified')
    assert.equal(await storedLogs(service, 'acme/owner'), before - 100, 'it is hidden')
    disk.free()
    await service.send('POST', `${path}/retry`)
    await waitUntilCompleted(service, id, 'acme/owner')
    assert.equal(await storedLogs(service, 'acme/owner'), before - 100)
    assert.equal(await storedLogs(service, 'globex/owner'), 10_000)
  })
})

describe('a service in its own process', { skip }, () => {
  const program = fileURLToPath(new URL('../../server/cli/lethe.ts', import.meta.url))
  const childProgram = fileURLToPath(new URL('uncaught-child.ts', import.meta.url))
  const running = new Set<ChildProcess>()
  const cleanUp: (() => void)[] = []
  after(() => {
    for (const child of running) child.kill('SIGKILL')
    for (const clean of cleanUp) clean()
  })

  function newDisk(bytes: number) {
    const disk = openSmallDisk(bytes)
    cleanUp.push(() => disk.remove())
    return disk
  }

  function start(file: string, env: Record<string, string>, stdout: 'pipe' | number = 'pipe') {
    const child = spawn(process.execPath, [...nodeFlags, file, 'serve'], {
      env: { ...nodeEnvironment, PATH: process.env.PATH, LETHE_GRPC_PORT: 'off', LETHE_PORT: '0', ...env },
      stdio: ['pipe', stdout, 'pipe'],
    })
    running.add(child)
    const said = { out: '', err: '' }
    child.stdout?.on('data', (chunk: Buffer) => {
      said.out += chunk.toString()
    })
    child.stderr?.on('data', (chunk: Buffer) => {
      said.err += chunk.toString()
    })
    const ended = once(child, 'close').then(([code, signal]) => {
      running.delete(child)
      return { code: code as number | null, signal: signal as NodeJS.Signals | null }
    })
    const listening = Promise.withResolvers<string>()
    child.stdout?.on('data', () => {
      const found = /listening at (http:\/\/[\d.:]+)/.exec(said.out)?.[1]
      if (found !== undefined) listening.resolve(found)
    })
    void ended.then(() => listening.reject(new Error(`it ended before it listened: ${said.err}`)))
    listening.promise.catch(() => undefined)
    const address = () => listening.promise
    return { child, said, ended, address }
  }

  /** Waits until `/readyz` has the status. */
  async function assertReaches(address: string, wanted: string): Promise<void> {
    await waitFor(
      async () => {
        const answer = await fetch(`${address}/readyz`).catch(() => null)
        return ((await answer?.json()) as { status: string } | undefined)?.status
      },
      (status) => status === wanted,
    )
  }

  test('a start without any room ends with a sentence that names the disk, and a start that can release the reserve succeeds', async () => {
    const disk = newDisk(96 * mebibyte)
    const env = { LETHE_DATA_DIR: disk.folder, LETHE_RESERVE_MB: '16' }
    const assertNoRoom = async (settings: Record<string, string>) => {
      const without = start(program, { ...settings, LETHE_LOG_LEVEL: 'silent' })
      assert.equal((await without.ended).code, 1)
      assert.match(without.said.err, /^lethe: The service can't start, because the disk of \S+ is full/)
      assert.equal(without.said.err.trim().split('\n').length, 1)
    }
    disk.fill()
    await assertNoRoom(env)
    disk.free()
    const first = start(program, env)
    await assertReaches(await first.address(), 'ok')
    first.child.kill('SIGTERM')
    assert.equal((await first.ended).code, 0, first.said.err)
    disk.fill()
    const second = start(program, env)
    await assertReaches(await second.address(), 'disk_full')
    disk.free()
    await assertReaches(await second.address(), 'ok')
    second.child.kill('SIGTERM')
    assert.equal((await second.ended).code, 0, second.said.err)
    // Room for the telemetry engine, which is created, but not for a control plane.
    for (const name of ['control.db', 'control.db-wal', 'control.db-shm', 'reserve'])
      rmSync(join(disk.folder, name), { force: true })
    disk.fill(32 * 1024)
    await assertNoRoom({ ...env, LETHE_RESERVE_MB: '0' })
  })

  test('on a disk that becomes read-only it says so, writes nothing, can be read, and stops on request', {
    skip: whyNoBreakingDisk() ?? false,
  }, async () => {
    const disk = openBreakingDisk(256 * mebibyte)
    cleanUp.push(() => disk.remove())
    const token = 'an-owner-secret-of-32-characters-or-more'
    const settings = { LETHE_BOOTSTRAP_ORG: 'acme', LETHE_BOOTSTRAP_TOKEN: token, LETHE_RESERVE_MB: '1' }
    const service = start(program, { LETHE_DATA_DIR: disk.folder, ...settings })
    const address = await service.address()
    await assertReaches(address, 'ok')
    const ask = (path: string, body?: object) =>
      fetch(`${address}${path}`, {
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body && { method: 'POST', body: JSON.stringify(body) }),
      })
    assert.equal((await ask('/v1/logs', sampleExport('logs', [mondayNs]))).status, 200)
    disk.break()
    await assertReaches(address, 'disk_failing')
    for (const [path, body] of [
      ['/v1/logs', sampleExport('logs', [mondayNs])],
      [deletions, { scope: 'all', confirm: 'acme' }],
    ] as const) {
      const refused = await ask(path, body)
      assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '10'], path)
    }
    const { rows } = (await (await ask('/usage/storage')).json()) as { rows: number }
    assert.equal(rows, 1, 'stored telemetry is shown: no request was accepted that would hide it')
    service.child.kill('SIGTERM')
    assert.equal((await service.ended).signal, null, service.said.err)
    const again = start(program, { LETHE_DATA_DIR: disk.folder, ...settings })
    assert.equal((await again.ended).code, 1)
    assert.match(again.said.err, /^lethe: The service can't start, because the disk of \S+ refuses writes/m)
  })

  test('an uncaught error ends it at once, and folder and port are free; it runs where its log is on a full disk', async () => {
    const logs = newDisk(mebibyte)
    logs.fill()
    const folder = temporaryFolder()
    cleanUp.push(() => rmSync(folder, { recursive: true, force: true }))
    const port = String(await freePort())
    const env = { LETHE_DATA_DIR: folder, LETHE_PORT: port, LETHE_RESERVE_MB: '1' }
    const dying = start(childProgram, env)
    await dying.address()
    dying.child.stdin?.write('die\n')
    assert.equal((await dying.ended).signal, 'SIGKILL')
    assert.match(dying.said.err, /an uncaught error of the test/)
    const next = start(program, env, openSync(join(logs.folder, 'service.log'), 'a'))
    const address = `http://127.0.0.1:${port}`
    await assertReaches(address, 'ok')
    assert.equal((await fetch(`${address}/me`)).status, 401)
    logs.free()
    next.child.kill('SIGTERM')
    assert.deepEqual(await next.ended, { code: 0, signal: null }, next.said.err)
  })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return address !== null && typeof address === 'object' ? address.port : assert.fail('no port')
}
