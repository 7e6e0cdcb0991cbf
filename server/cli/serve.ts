// `lethe serve`: runs the service until it gets a signal to stop. On an empty data folder it creates the
// first organisation and its owner token; a generated token is printed once and stored nowhere. On SIGTERM
// and SIGINT it drains: accepted telemetry is committed, a running erasure ends its step, and the process
// exits.

import { writeSync } from 'node:fs'
import type { FastifyBaseLogger } from 'fastify'
import pino from 'pino'
import { type App, createApp } from '../app.ts'
import type { Config } from '../config.ts'
import { operatorActor } from '../core/actor.ts'
import { systemClock } from '../core/clock.ts'
import { newTokenSecret } from '../tenancy/tenancy.ts'
import { sendSignsOfLife } from '../worker/heartbeat.ts'
import { openInBrowser, signInLink } from './console-link.ts'
import { harmless, type JsonOption, printJsonLine } from './print.ts'

/** Organisation of the first start where the settings name none. */
const firstTenantId = 'default'

export async function serveUntilStopped(config: Config, options: JsonOption): Promise<void> {
  const logger = createLogger(config)
  // If the output of the first start is lost, `lethe token create` makes another token.
  process.stdout.on('error', () => undefined)
  const { restarts } = config
  if (restarts.crashed + restarts.hung > 0) {
    logger.warn({ restarts }, 'the watchdog started the service again; standard error has the cause')
  }
  const app = await createApp({ config, clock: systemClock, logger })
  stopOnSignal(app, logger)
  void app.failedOver.then(() => endAtOnce(failedOver))
  let welcome: Welcome | null = null
  const address = await app.start(async () => {
    welcome = await bootstrap(app, config)
  })
  void sendSignsOfLife(process, systemClock, () => process.kill(process.pid, 'SIGTERM'))
  const link = await linkFor(app, address, welcome)
  const reference = `${config.docs === 'on' ? address : app.adminAddress()}/docs`
  if (options.json) printJsonLine(startedForm(address, app, welcome, link))
  else if (welcome !== null && link !== null) {
    process.stdout.write(firstSteps({ address, reference, grpcAddress: app.grpcAddress(), link }, welcome))
    void openInBrowser(link, process.env)
  }
  await prepareConsole(app, logger)
}

/** Null at any start after the first. */
async function linkFor(app: App, address: string, welcome: Welcome | null): Promise<string | null> {
  return welcome === null ? null : signInLink(app, address, welcome.secret, firstStart)
}

/** The service also works without the console; its page then says that it could not be built. */
export async function prepareConsole(app: App, logger: FastifyBaseLogger): Promise<void> {
  await app.prepareConsole().catch((err: unknown) => logger.error({ err }, 'the console could not be built'))
}

/** Organisation, token and link are null at any start after the first. */
function startedForm(address: string, app: App, welcome: Welcome | null, console_link: string | null) {
  const { tenantId: tenant_id = null, token = null } = welcome ?? {}
  const listeners = { address, admin_address: app.adminAddress(), grpc_address: app.grpcAddress() }
  return { ...listeners, tenant_id, token, console_link }
}

/** Bytes of log lines that may wait while the output is blocked; later lines are dropped. */
const logBufferBytes = 256 * 1024

/**
 * JSON lines on standard output. Fields with secrets are not logged; as a second safeguard they are redacted.
 * If standard output is a file on a full disk, the service continues and lines are lost.
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
 * Ctrl-C in a terminal reaches every process of the group, and launchers forward it too: signals within this
 * time count as one.
 */
const repeatedSignalMs = 1000

/** Nothing that was accepted is lost, and the watchdog starts the service again. */
const failedOver =
  'another server has taken over the control-plane database. The service ends, and compares the database with the telemetry when it starts.'

/**
 * Prints the lines and kills the process, as a crash would. A normal exit runs the engine's exit code, which
 * waits for statements that may never end; meanwhile the data folder and the port would stay in use.
 */
function endAtOnce(...lines: readonly string[]): void {
  try {
    writeSync(process.stderr.fd, `lethe: ${lines.map(harmless).join('\n')}\n`)
  } finally {
    process.kill(process.pid, 'SIGKILL')
  }
}

function endOnUncaught(): void {
  const end = (error: unknown) => {
    const stack = error instanceof Error ? (error.stack ?? '') : ''
    const calls = stack.split('\n').filter((line) => /^ +at /.test(line))
    endAtOnce(`ended by an unexpected error: ${error}`, ...calls)
  }
  process.on('uncaughtException', end)
  process.on('unhandledRejection', end)
}

/**
 * Stops gracefully at the first signal; the process ends when no work is left. A second signal ends it at
 * once.
 */
export function stopOnSignal(app: App, logger: FastifyBaseLogger, also: () => void = () => {}): void {
  endOnUncaught()
  let stoppingSinceMs: number | null = null
  const stop = (signal: NodeJS.Signals) => {
    const nowMs = systemClock.nowMs()
    if (stoppingSinceMs !== null && nowMs - stoppingSinceMs > repeatedSignalMs) process.exit(1)
    if (stoppingSinceMs !== null) return
    stoppingSinceMs = nowMs
    logger.info({ signal }, 'stopping: finishing accepted work')
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
  /** Null where the operator chose the token. */
  readonly token: string | null
  readonly secret: string
}

const firstStart = operatorActor('first-start')

/** Creates the first organisation and its owner token on an empty data folder; null at any later start. */
async function bootstrap(app: App, config: Config): Promise<Welcome | null> {
  const tenantId = config.bootstrap.tenantId ?? firstTenantId
  const known = await app.tenancy.listOrganisations()
  const isKnown = known.some((place) => place.tenantId === tenantId)
  if (isKnown || (known.length > 0 && config.bootstrap.tenantId === null)) return null
  // An organisation that was removed is never created again.
  if (await app.tenancy.wasRemoved(tenantId)) return null
  const secret = config.bootstrap.token ?? newTokenSecret('owner')
  await app.createOrganisation({ tenantId, name: tenantId, actor: firstStart }, secret)
  return { tenantId, token: config.bootstrap.token === null ? secret : null, secret }
}

interface Addresses {
  readonly address: string
  readonly reference: string
  readonly grpcAddress: string | null
  readonly link: string
}

function firstSteps(
  { address, reference, grpcAddress, link }: Addresses,
  { tenantId, token }: Welcome,
): string {
  const secret = token ?? '<LETHE_BOOTSTRAP_TOKEN>'
  return `
Lethe is ready at ${address} (reference: ${reference}).
Organisation: ${tenantId}
${token === null ? 'Owner token: the LETHE_BOOTSTRAP_TOKEN you set' : `Owner token, shown only once: ${token}`}

Open the console; this link signs you in once, within an hour:
  ${link}

Try it:
  curl -s -H 'Authorization: Bearer ${secret}' ${address}/me

Point an OpenTelemetry SDK at it (better with an ingest token: ./lethe token create --org ${tenantId} --role ingest):
  export OTEL_EXPORTER_OTLP_ENDPOINT=${address}
  export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
  export OTEL_EXPORTER_OTLP_HEADERS='Authorization=Bearer%20${secret}'
${grpcAddress === null ? '' : `OTLP/gRPC is at http://${grpcAddress}, `}Prometheus remote write at ${address}/api/v1/write.

`
}
