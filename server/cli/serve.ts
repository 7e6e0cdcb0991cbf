// `lethe serve`: the service until it is told to stop. On an empty data folder it creates the first
// organisation and its owner token; a token nobody chose is printed once and is nowhere else.
// SIGTERM and SIGINT drain: what was accepted is committed, what is being erased ends its step, and
// the process ends by itself.

import { writeSync } from 'node:fs'
import type { FastifyBaseLogger } from 'fastify'
import pino from 'pino'
import { type App, createApp } from '../app.ts'
import type { Config } from '../config.ts'
import { operatorActor } from '../core/actor.ts'
import { systemClock } from '../core/clock.ts'
import { newTokenSecret } from '../tenancy/tenancy.ts'
import { harmless, type JsonOption, printJsonLine } from './print.ts'

/** Organisation of a first start that names none. */
const firstTenantId = 'default'

export async function serveUntilStopped(config: Config, options: JsonOption): Promise<void> {
  const logger = createLogger(config)
  // A first start whose output is lost goes on; `lethe token create` makes another token.
  process.stdout.on('error', () => undefined)
  const app = await createApp({ config, clock: systemClock, logger })
  stopOnSignal(app, logger)
  let welcome: Welcome | null = null
  const address = await app.start(async () => {
    welcome = await bootstrap(app, config)
  })
  const reference = `${config.docs === 'on' ? address : app.adminAddress()}/docs`
  if (options.json) printJsonLine(startedForm(address, app, welcome))
  else if (welcome !== null) process.stdout.write(firstSteps(address, reference, app.grpcAddress(), welcome))
}

/** Null in place of the organisation and its token at any start but the first. */
function startedForm(address: string, app: App, welcome: Welcome | null) {
  const { tenantId: tenant_id = null, token = null } = welcome ?? {}
  return { address, admin_address: app.adminAddress(), grpc_address: app.grpcAddress(), tenant_id, token }
}

/** Lines that wait for a log that takes none, bytes; what comes after them is dropped. */
const logBufferBytes = 256 * 1024

/**
 * JSON lines on standard output; what carries a secret is not logged in the first place, and censored
 * besides. Where standard output is a file on a full disk the service goes on, and lines are lost.
 */
export function createLogger(config: Config): FastifyBaseLogger {
  const output = pino.destination({ dest: process.stdout.fd, sync: true, maxLength: logBufferBytes })
  output.on('error', () => undefined)
  const options = {
    level: config.logLevel,
    redact: {
      paths: ['req.headers.authorization', '*.authorization', '*.token', '*.secret'],
      censor: '[secret]',
    },
  }
  return pino(options, output)
}

/**
 * A terminal's Ctrl-C reaches every process of the group, and launchers pass it on besides: the same wish may
 * arrive several times within this time.
 */
const oneWishMs = 1000

/**
 * An error that nobody caught ends the process at once, as the system ends one. The usual way runs
 * what the engine does at an exit, which waits for statements that may never end, and folder and port
 * would be held meanwhile.
 */
function endOnUncaught(): void {
  const end = (error: unknown) => {
    try {
      const stack = error instanceof Error ? (error.stack ?? '') : ''
      const calls = stack.split('\n').filter((line) => /^ +at /.test(line))
      const lines = [`lethe: ended by an error that nobody expected: ${error}`, ...calls]
      writeSync(process.stderr.fd, `${lines.map(harmless).join('\n')}\n`)
    } finally {
      process.kill(process.pid, 'SIGKILL')
    }
  }
  process.on('uncaughtException', end)
  process.on('unhandledRejection', end)
}

/** Ends the process by letting it run out of work; a second wish to stop doesn't wait. */
export function stopOnSignal(app: App, logger: FastifyBaseLogger, also: () => void = () => {}): void {
  endOnUncaught()
  let stoppingSinceMs: number | null = null
  const stop = (signal: NodeJS.Signals) => {
    const nowMs = systemClock.nowMs()
    if (stoppingSinceMs !== null && nowMs - stoppingSinceMs > oneWishMs) process.exit(1)
    if (stoppingSinceMs !== null) return
    stoppingSinceMs = nowMs
    logger.info({ signal }, 'stopping: finishing what was accepted')
    also()
    app.close().then(
      () => process.exit(0),
      (err) => {
        logger.error({ err }, 'stopping failed')
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
}

interface Welcome {
  readonly tenantId: string
  /** Null where the operator chose it and so knows it. */
  readonly token: string | null
}

/** Creates the first organisation and its owner token where there is none; null at any later start. */
async function bootstrap(app: App, config: Config): Promise<Welcome | null> {
  const tenantId = config.bootstrap.tenantId ?? firstTenantId
  const known = await app.tenancy.listOrganisations()
  const isKnown = known.some((place) => place.tenantId === tenantId)
  if (isKnown || (known.length > 0 && config.bootstrap.tenantId === null)) return null
  // Removed on purpose: a restart doesn't bring it back, and can't.
  if (await app.tenancy.wasRemoved(tenantId)) return null
  const secret = config.bootstrap.token ?? newTokenSecret('owner')
  await app.createOrganisation({ tenantId, name: tenantId, actor: operatorActor('first-start') }, secret)
  return { tenantId, token: config.bootstrap.token === null ? secret : null }
}

function firstSteps(
  address: string,
  reference: string,
  grpcAddress: string | null,
  { tenantId, token }: Welcome,
): string {
  const secret = token ?? '<LETHE_BOOTSTRAP_TOKEN>'
  return `
Lethe is ready at ${address} (reference: ${reference}).
Organisation: ${tenantId}
${token === null ? 'Owner token: the LETHE_BOOTSTRAP_TOKEN you set' : `Owner token, shown this once: ${token}`}

Try it:
  curl -s -H 'Authorization: Bearer ${secret}' ${address}/me

Point an OpenTelemetry SDK at it (better with an ingest token: ./lethe token create --org ${tenantId} --role ingest):
  export OTEL_EXPORTER_OTLP_ENDPOINT=${address}
  export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
  export OTEL_EXPORTER_OTLP_HEADERS='Authorization=Bearer%20${secret}'
${grpcAddress === null ? '' : `OTLP/gRPC is at http://${grpcAddress}, `}Prometheus remote write at ${address}/api/v1/write.

`
}
