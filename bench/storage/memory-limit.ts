// What becomes of the service under a memory limit of the system: it is put into a control group of its
// own, log records are sent for a while, and where the kernel ends it, it is started again without the
// limit. Every acknowledged row has to be there, and an erasure has to complete. Needs root, and control
// groups that can be made.
//
//   node bench/storage/memory-limit.ts [--megabytes 330] [--seconds 25]

import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { temporaryFolder } from '../../tests/fixtures.ts'
import { freePort } from '../peers/server.ts'
import { provenance } from './bench-store.ts'

const { values } = parseArgs({
  options: {
    megabytes: { type: 'string', default: '330' },
    seconds: { type: 'string', default: '25' },
  },
})
const limitBytes = Number(values.megabytes) * 1024 * 1024
const program = fileURLToPath(new URL('../../server/cli/lethe.ts', import.meta.url))

/** Version 1 has a hierarchy for memory alone, version 2 one for all. */
const isFirst = existsSync('/sys/fs/cgroup/memory')
const group = join(isFirst ? '/sys/fs/cgroup/memory' : '/sys/fs/cgroup', `lethe-bench-${process.pid}`)
const limitFile = isFirst ? 'memory.limit_in_bytes' : 'memory.max'

const folder = temporaryFolder()
const port = await freePort()
const address = `http://127.0.0.1:${port}`
const secret = 'a-secret-of-32-characters-or-more'
const env = {
  ...process.env,
  LETHE_DATA_DIR: folder,
  LETHE_PORT: String(port),
  LETHE_GRPC_PORT: 'off',
  LETHE_BOOTSTRAP_TOKEN: secret,
  LETHE_LOG_LEVEL: 'silent',
}

async function start(isLimited: boolean): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, 'serve'], {
    env,
    stdio: 'ignore',
  })
  if (isLimited) writeFileSync(join(group, 'cgroup.procs'), String(child.pid))
  for (let look = 0; look < 300; look++) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('It ended while it started.')
    if (
      await fetch(`${address}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return child
    await sleep(200)
  }
  throw new Error('It was not ready after a minute.')
}

/** The fields of answers that are looked at here. */
interface Answered {
  readonly rows: number
  readonly request_id: string
  readonly status: string
  readonly finished_at: string | null
  readonly detail: { readonly rows_erased: number }
}

async function ask(method: string, path: string, body?: object): Promise<{ status: number; body: Answered }> {
  const answer = await fetch(`${address}${path}`, {
    method,
    headers: { authorization: `Bearer ${secret}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: answer.status, body: (await answer.json()) as Answered }
}

const rowsOfBody = 4000
const rows = { acknowledged: 0, refused: 0, unanswered: 0 }

async function send(untilMs: number): Promise<void> {
  while (performance.now() < untilMs) {
    const logRecords = Array.from({ length: rowsOfBody }, (_, i) => ({
      timeUnixNano: `${Date.now()}000000`,
      body: { stringValue: `row ${i} ${'y'.repeat(300)}` },
      attributes: [{ key: 'n', value: { stringValue: randomBytes(24).toString('hex') } }],
    }))
    const body = { resourceLogs: [{ resource: {}, scopeLogs: [{ logRecords }] }] }
    const status = await ask('POST', '/v1/logs', body).then(
      (answer) => answer.status,
      () => null,
    )
    if (status === 200) rows.acknowledged += rowsOfBody
    else if (status === null) rows.unanswered += rowsOfBody
    else rows.refused += rowsOfBody
    if (status !== 200) await sleep(200)
  }
}

mkdirSync(group)
try {
  writeFileSync(join(group, limitFile), String(limitBytes))
  let service = await start(true)
  const untilMs = performance.now() + Number(values.seconds) * 1000
  await Promise.all(Array.from({ length: 12 }, () => send(untilMs)))
  const endedBy = service.signalCode
  if (endedBy !== null) service = await start(false)
  const stored = (await ask('GET', '/usage/storage')).body.rows
  const asked = await ask('POST', '/usage/storage/deletions', { scope: 'all', confirm: 'default' })
  let erasure = asked.body
  while (erasure.finished_at === null) {
    await sleep(200)
    erasure = (await ask('GET', `/usage/storage/deletions/${erasure.request_id}`)).body
  }
  const { detail, status } = erasure
  const result = { limitBytes, endedBy, ...rows, stored, erasure: status, erased: detail.rows_erased }
  process.stdout.write(`${JSON.stringify({ ...provenance(), ...result }, null, 2)}\n`)
  service.kill()
  await once(service, 'exit')
  if (stored < rows.acknowledged || status !== 'completed') process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
  rmdirSync(group)
}
