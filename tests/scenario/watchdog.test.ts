// The service under its supervisor: native code aborts, and the next process serves the same data; and when
// the supervisor is killed, the service ends too.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { temporaryFolder } from '../fixtures.ts'
import { type SupervisedService, superviseService } from './supervised.ts'

let service: SupervisedService
before(async () => {
  service = await superviseService({ LETHE_DATA_DIR: join(temporaryFolder(), 'data') })
})
after(() => service?.stop())

const metrics = async () => (await service.send('GET', '/metrics', null)).text

function servingPid(): number {
  const children = readFileSync(`/proc/${service.pid}/task/${service.pid}/children`, 'utf8')
  return Number(children.trim().split(' ')[0])
}

test('a service that native code aborts is started again, and reports it in its log and its metrics', {
  timeout: 120_000,
}, async () => {
  const { token } = service.started()
  assert.equal(typeof token, 'string')
  assert.match(await metrics(), /^lethe_restarts_total\{reason="crashed"\} 0$/m)
  const pid = servingPid()
  process.kill(pid, 'SIGABRT')

  await service.restarted()
  assert.match(await metrics(), /^lethe_restarts_total\{reason="crashed"\} 1$/m)
  assert.equal(service.started().token, null, 'it serves the same data folder')
  assert.notEqual(servingPid(), pid)
  assert.match(
    service.said(),
    /^lethe: the service failed after \d+ s: SIGABRT ended it\. It starts again in 1 s\.$/m,
  )

  service.stop()
  await service.lineWith('stopping: finishing accepted work')
  await service.outputEnded
})
