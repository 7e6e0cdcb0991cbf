// Wires the HTTP listeners: the main one and, where the operator has configured one, the admin listener,
// which serves the pages for operators away from clients. Each has the same limits for itself, except for
// responses in progress, which share one limit of memory.

import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { everyOperation } from '../../contract/operations/every.ts'
import { type Config, ConfigError } from '../config.ts'
import type { Clock } from '../core/clock.ts'
import { version } from '../core/process/version.ts'
import type { LoopTurns } from '../core/turns/loop-turns.ts'
import { byAccessToken } from '../http/authentication.ts'
import { ClientLimits } from '../http/client-limits.ts'
import { buildConsole } from '../http/console/console-build.ts'
import { ConsolePages } from '../http/console/console-pages.ts'
import { byCredential } from '../http/credentials.ts'
import { ClientAddresses } from '../http/limits/client-address.ts'
import { Connections } from '../http/limits/connections.ts'
import { RefusalPace } from '../http/limits/refusal-pace.ts'
import { ResponsesInProgress } from '../http/limits/responses-in-progress.ts'
import { addFrontPage } from '../http/pages/front-page.ts'
import { addHealthRoutes, addMetricsRoute, type HealthSources } from '../http/pages/health.ts'
import { openApiAnswer } from '../http/pages/openapi.ts'
import { addReferencePage } from '../http/pages/reference-page.ts'
import type { OnRefusal } from '../http/refused-request.ts'
import { createHttp, type HttpOptions, type WithReserve } from '../http/server.ts'
import type { ServiceMetrics } from '../metrics.ts'
import type { SessionStore } from '../tenancy/sessions.ts'
import type { TenancyStore } from '../tenancy/store.ts'

export interface HttpNeeds {
  readonly config: Config
  readonly clock: Clock
  readonly logger: FastifyBaseLogger
  readonly clients: ClientLimits
  readonly turns: LoopTurns
  readonly refusalPace: RefusalPace
  readonly disk: { readonly withReserve: WithReserve }
  readonly isReady: () => boolean
  readonly onRefusal: OnRefusal
}

export interface WiredHttp {
  readonly http: FastifyInstance
  readonly connections: Connections
  readonly answers: ResponsesInProgress
  /** Adds the public pages, each to its listener. */
  addPublicRoutes(metrics: ServiceMetrics, health: HealthSources): void
  /** Builds the console before its first request. Rejects where that fails. */
  prepareConsole(): Promise<void>
  /**
   * Listens and returns the address of the main listener. Throws ConfigError where the admin port is in use.
   */
  listen(): Promise<string>
  /** The address of the admin listener; null before it listens, and where there is none. */
  adminAddress(): string | null
  close(): Promise<void>
}

interface ClientNeeds {
  readonly config: Config
  readonly clock: Clock
  readonly tenancy: TenancyStore
  readonly sessions: SessionStore
}

/** Limits of clients for HTTP and gRPC together: of those without a valid token, and of repeated refusals. */
export function wireClients(needs: ClientNeeds): Pick<HttpNeeds, 'clients' | 'refusalPace'> {
  const { clock, config, sessions, tenancy } = needs
  const clients = new ClientLimits({
    clock,
    addresses: addressesOf(config),
    authenticate: byCredential({
      ofToken: (secret, { storesTelemetry }) =>
        storesTelemetry === true ? tenancy.findSender(secret) : tenancy.findCaller(secret),
      ofSession: (secret) => sessions.findCaller(secret),
      ofSignInCode: (code) => sessions.findCallerOfCode(code),
    }),
  })
  return { clients, refusalPace: new RefusalPace(clock) }
}

export function wireHttp(needs: HttpNeeds): WiredHttp {
  const { clients, clock, config, disk, isReady, logger, onRefusal, refusalPace, turns } = needs

  const answers = new ResponsesInProgress(clock)
  const open = (authenticate: HttpOptions['authenticate'], connections: Connections) =>
    createHttp({
      clock,
      logger,
      isReady,
      withReserve: disk.withReserve,
      authenticate,
      connections,
      answers,
      turns,
      refusalPace,
      onRefusal,
    })
  const connections = new Connections(config.connections, addressesOf(config), turns, clock)
  const http = open(clients, connections)
  const admin =
    config.admin === null
      ? null
      : open(
          byAccessToken(async () => null),
          new Connections(config.connections, addressesOf(config), turns, clock),
        )
  const pages = new ConsolePages(buildConsole)
  let adminAddress: string | null = null
  return {
    http,
    connections,
    answers,
    adminAddress: () => adminAddress,
    addPublicRoutes(metrics, health) {
      const document = openApiAnswer(everyOperation, version)
      const hasDocs = config.docs === 'on'
      if (hasDocs) addReferencePage(http, { document, canTry: true })
      addFrontPage(http, version, hasDocs)
      pages.addRoutes(http)
      addHealthRoutes(http, health)
      addMetricsRoute(admin ?? http, metrics.registry)
      if (admin === null) return
      addReferencePage(admin, { document, canTry: false })
      addHealthRoutes(admin, health)
    },
    prepareConsole: () => pages.prepare(),
    async listen() {
      if (admin !== null && config.admin !== null) adminAddress = await listenForAdmin(admin, config.admin)
      return http.listen({ host: config.host, port: config.port })
    },
    async close() {
      await Promise.all([http.close(), admin?.close()])
    },
  }
}

function addressesOf({ proxyHeader, trustedProxies }: Config): ClientAddresses {
  return new ClientAddresses(trustedProxies, proxyHeader)
}

async function listenForAdmin(
  admin: FastifyInstance,
  { host, port }: NonNullable<Config['admin']>,
): Promise<string> {
  try {
    return await admin.listen({ host, port })
  } catch (cause) {
    throw new ConfigError(
      `The admin listener can't listen on ${host} port ${port}; choose another with LETHE_ADMIN_PORT or LETHE_ADMIN_HOST.`,
      { cause },
    )
  }
}
