// Stopping with open gRPC connections: a call that waits for its commit gets its response, an idle connection
// delays nothing, and later calls are refused for a retry.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { after, before, test } from 'node:test'
import { createApp } from '../../server/app.ts'
import { ConfigError, readConfig } from '../../server/config.ts'
import { type Clock, systemClock } from '../../server/core/clock.ts'
import { silent, temporaryFolder } from '../fixtures.ts'
import { encodeProto } from '../otlp/otlp-messages.ts'
import { waitFor } from '../wait-for.ts'
import { GrpcClient } from './grpc-client.ts'
import { type Service, startService } from './service.ts'
import { mondayNs, sampleExport } from './telemetry.ts'

const commitDelayMs = 1234
const delay = Promise.withResolvers<void>()

let service: Service
before(async () => {
  // The delay of a commit ends when the test has seen that the call waits. Nothing else sleeps this long.
  const sleep: Clock['sleep'] = (ms, signal) =>
    ms === commitDelayMs ? delay.promise : systemClock.sleep(ms, signal)
  service = await startService({
    settings: { LETHE_COMMIT_DELAY_MS: String(commitDelayMs) },
    clock: { ...systemClock, sleep },
  })
})
after(() => service.stop())

test('accepted telemetry is committed and answered before the service exits', async () => {
  const address = service.app.grpcAddress() ?? assert.fail('no gRPC')
  const [idle, client] = [new GrpcClient(address), new GrpcClient(address)]
  const secret = service.secretOf('acme/ingest')
  const body = encodeProto('logs', sampleExport('logs', [mondayNs]))
  assert.equal((await idle.export('logs', Buffer.alloc(0), secret)).code, 0)
  const waiting = client.export('logs', body, secret)
  await waitFor(
    async () => (await service.send('GET', '/metrics')).text,
    (text) => /^lethe_ingest_buffered_bytes [1-9]/m.test(text),
  )
  const closed = service.app.close()
  delay.resolve()
  assert.equal((await waiting).code, 0)
  await closed
  const late = await idle.export('logs', body, secret)
  assert.equal(late.code, 14)
  idle.close()
  client.close()
})

test('a used port is reported with its setting, before anything is served', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const address = taken.address()
  const port = typeof address === 'object' && address !== null ? address.port : assert.fail()
  const dataDir = temporaryFolder()
  const settings = { LETHE_DATA_DIR: dataDir, LETHE_PORT: '0', LETHE_GRPC_PORT: String(port) }
  const app = await createApp({ config: readConfig(settings), clock: systemClock, logger: silent })
  await assert.rejects(
    app.start(),
    (error) => error instanceof ConfigError && /LETHE_GRPC_PORT/.test(error.message),
  )
  await app.close()
  taken.close()
  rmSync(dataDir, { recursive: true, force: true })
})
