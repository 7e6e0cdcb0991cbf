// The service under its supervisor, as `lethe serve` runs it: native code aborts, and the next process serves
// the same data; and when the supervisor is killed, the service ends too.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../fixtures.ts'

const launcher = fileURLToPath(new URL('../../scripts/lethe.mjs', import.meta.url))
const supervisor = spawn(process.execPath, [launcher, 'serve', '--json'], {
  env: {
    ...process.env,
    LETHE_DATA_DIR: join(temporaryFolder(), 'data'),
    LETHE_PORT: '0',
    LETHE_ENGINE_MEMORY_MB: '1024',
  },
  stdio: ['ignore', 'pipe', 'pipe'],
})
after(() => supervisor.kill('SIGKILL'))
let said = ''
supervisor.stderr.on('data', (chunk) => {
  said += chunk
})
const lines = createInterface({ input: supervisor.stdout })[Symbol.asyncIterator]()

/** Reads the output up to a line with the text. */
async function lineWith(text: string): Promise<string> {
  for (;;) {
    const { value, done } = await lines.next()
    if (done) return assert.fail(`The output ended before "${text}". ${said}`)
    if (value.includes(text)) return value
  }
}

async function metricsOf(line: string): Promise<string> {
  const { address } = JSON.parse(line) as { address: string }
  return (await fetch(`${address}/metrics`)).text()
}

function servingPid(): number {
  const children = readFileSync(`/proc/${supervisor.pid}/task/${supervisor.pid}/children`, 'utf8')
  return Number(children.trim().split(' ')[0])
}

test('a service that native code aborts is started again, and reports it in its log and its metrics', {
  timeout: 120_000,
}, async () => {
  const first = await metricsOf(await lineWith('"console_link"'))
  assert.match(first, /^lethe_restarts_total\{reason="crashed"\} 0$/m)
  const pid = servingPid()
  process.kill(pid, 'SIGABRT')

  await lineWith('"restarts":{"crashed":1,"hung":0}')
  const second = await lineWith('"console_link"')
  assert.match(await metricsOf(second), /^lethe_restarts_total\{reason="crashed"\} 1$/m)
  assert.equal((JSON.parse(second) as { token: unknown }).token, null, 'it serves the same data folder')
  assert.notEqual(servingPid(), pid)
  assert.match(said, /^lethe: the service failed after \d+ s: SIGABRT ended it\. It starts again in 1 s\.$/m)

  const outputEnded = once(supervisor.stdout, 'end')
  supervisor.kill('SIGKILL')
  await lineWith('stopping: finishing accepted work')
  await outputEnded
})
