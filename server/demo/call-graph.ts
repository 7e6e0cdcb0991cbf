// Which service calls which in the demo shop. Each flow is the tree of steps that one visitor's request
// causes, in the order in which they happen; each step becomes one span. Traces, request counts, latencies
// and error propagation are all computed from these trees, so the three signals agree about the structure of
// the shop. Span and attribute names follow the OpenTelemetry semantic conventions 1.37 (HTTP, database,
// messaging).

export const serviceNames = [
  'storefront',
  'gateway',
  'catalogue',
  'search',
  'cart',
  'checkout',
  'payments',
  'inventory',
] as const

export type ServiceName = (typeof serviceNames)[number]

const flowNames = ['browse', 'search', 'add_to_cart', 'checkout'] as const

export type FlowName = (typeof flowNames)[number]

/** `SpanKind` of the OpenTelemetry protocol. */
export const spanKind = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const

export type Attributes = Readonly<Record<string, string | number>>

export interface Step {
  readonly service: ServiceName
  readonly kind: (typeof spanKind)[keyof typeof spanKind]
  readonly name: string
  /** Median time of the step itself, without the steps it calls, milliseconds, outside incidents. */
  readonly medianMs: number
  readonly attributes: Attributes
  /** Calls that run one after another, never at the same time. */
  readonly calls: readonly Step[]
  /** Work that another service does later because of a message; its own trace, with a link back. */
  readonly causes?: Step
}

export interface Flow {
  readonly name: FlowName
  readonly root: Step
  /** Requests per minute, averaged over a week. */
  readonly requestsPerMinute: number
  /**
   * One request in this many is traced, at all hours, because a changing share would look like an anomaly.
   */
  readonly tracedOneIn: number
}

/** The error of a service that fails by itself. */
interface Failure {
  readonly type: string
  readonly message: string
  readonly code: number
}

export const failures: Readonly<Record<ServiceName, Failure>> = {
  storefront: { type: 'TemplateRenderError', message: 'could not render the page', code: 500 },
  gateway: { type: 'UpstreamConnectError', message: 'no healthy upstream', code: 503 },
  catalogue: { type: 'PoolTimeoutError', message: 'no database connection within 2 s', code: 500 },
  search: { type: 'SearchPhaseError', message: 'all shards failed', code: 503 },
  cart: { type: 'RedisTimeoutError', message: 'command timed out', code: 500 },
  checkout: { type: 'PriceChangedError', message: 'price changed during checkout', code: 500 },
  payments: { type: 'ProviderTimeoutError', message: 'card provider did not answer in time', code: 504 },
  inventory: { type: 'OutOfMemoryError', message: 'could not allocate a reservation', code: 503 },
}

const serve = (
  service: ServiceName,
  method: string,
  route: string,
  medianMs: number,
  calls: readonly Step[],
): Step => ({
  service,
  kind: spanKind.server,
  name: `${method} ${route}`,
  medianMs,
  attributes: { 'http.request.method': method, 'http.route': route, 'url.scheme': 'http' },
  calls,
})

/** A call over the network: the CLIENT span of the caller around the SERVER span of the callee. */
const call = (service: ServiceName, callee: Step): Step => {
  const method = String(callee.attributes['http.request.method'])
  return {
    service,
    kind: spanKind.client,
    name: method,
    medianMs: 0.8,
    attributes: {
      'http.request.method': method,
      'server.address': `${callee.service}.shop.internal`,
      'server.port': 8080,
    },
    calls: [callee],
  }
}

const query = (
  service: ServiceName,
  system: string,
  operation: string,
  collection: string,
  medianMs: number,
): Step => ({
  service,
  kind: spanKind.client,
  name: `${operation} ${collection}`,
  medianMs,
  attributes: {
    'db.system.name': system,
    'db.operation.name': operation,
    'db.collection.name': collection,
    'server.address': `${system}.shop.internal`,
  },
  calls: [],
})

/** The gateway is a proxy with one span per request, so the parent of its callee is the SERVER span. */
const throughGateway = (callee: Step): Step =>
  call(
    'storefront',
    serve('gateway', String(callee.attributes['http.request.method']), '/api/*', 1.2, [callee]),
  )

const reserveStock = serve('inventory', 'POST', '/reservations', 4, [
  query('inventory', 'postgresql', 'UPDATE', 'stock', 6),
])

const settleOrder: Step = {
  service: 'inventory',
  kind: spanKind.consumer,
  name: 'process orders',
  medianMs: 5,
  attributes: {
    'messaging.system': 'kafka',
    'messaging.operation.type': 'process',
    'messaging.operation.name': 'process',
    'messaging.destination.name': 'orders',
    'messaging.consumer.group.name': 'inventory',
  },
  calls: [query('inventory', 'postgresql', 'INSERT', 'shipments', 7)],
}

const publishOrder: Step = {
  service: 'checkout',
  kind: spanKind.producer,
  name: 'send orders',
  medianMs: 3,
  attributes: {
    'messaging.system': 'kafka',
    'messaging.operation.type': 'send',
    'messaging.operation.name': 'send',
    'messaging.destination.name': 'orders',
  },
  calls: [],
  causes: settleOrder,
}

const scoreRisk: Step = {
  service: 'payments',
  kind: spanKind.internal,
  name: 'score risk',
  medianMs: 9,
  attributes: { 'shop.risk.model': 'v4' },
  calls: [],
}

const tokeniseCard: Step = {
  service: 'payments',
  kind: spanKind.internal,
  name: 'tokenise card',
  medianMs: 4,
  attributes: { 'shop.payment.vault': 'eu-1' },
  calls: [],
}

const askProvider: Step = {
  service: 'payments',
  kind: spanKind.client,
  name: 'POST',
  medianMs: 160,
  attributes: {
    'http.request.method': 'POST',
    'server.address': 'api.card-provider.example',
    'server.port': 443,
    'url.full': 'https://api.card-provider.example/v2/charges',
  },
  calls: [],
}

export const flows: readonly Flow[] = [
  {
    name: 'browse',
    requestsPerMinute: 800,
    tracedOneIn: 1024,
    root: serve('storefront', 'GET', '/products/{id}', 9, [
      throughGateway(
        serve('catalogue', 'GET', '/products/{id}', 3, [
          query('catalogue', 'postgresql', 'SELECT', 'products', 5),
        ]),
      ),
    ]),
  },
  {
    name: 'search',
    requestsPerMinute: 300,
    tracedOneIn: 512,
    root: serve('storefront', 'GET', '/search', 11, [
      throughGateway(
        serve('search', 'GET', '/search', 6, [query('search', 'elasticsearch', 'search', 'products', 38)]),
      ),
    ]),
  },
  {
    name: 'add_to_cart',
    requestsPerMinute: 120,
    tracedOneIn: 256,
    root: serve('storefront', 'POST', '/cart/items', 7, [
      throughGateway(
        serve('cart', 'POST', '/cart/items', 4, [
          call('cart', reserveStock),
          query('cart', 'redis', 'HSET', 'carts', 1.1),
        ]),
      ),
    ]),
  },
  {
    name: 'checkout',
    requestsPerMinute: 26,
    tracedOneIn: 32,
    root: serve('storefront', 'POST', '/checkout', 8, [
      throughGateway(
        serve('checkout', 'POST', '/orders', 12, [
          call(
            'checkout',
            serve('cart', 'GET', '/cart', 2, [query('cart', 'redis', 'HGETALL', 'carts', 1.3)]),
          ),
          call('checkout', reserveStock),
          call(
            'checkout',
            serve('payments', 'POST', '/payments', 6, [
              scoreRisk,
              tokeniseCard,
              query('payments', 'postgresql', 'INSERT', 'charges', 5),
              askProvider,
            ]),
          ),
          publishOrder,
        ]),
      ),
    ]),
  },
]

/**
 * Returns the step in which a failure of `server`'s own service appears: its last leaf that calls another
 * system (a database, the card provider). Undefined for a service without one; then the request fails in
 * `server` itself.
 */
export function failingStep(server: Step): Step | undefined {
  return server.calls.findLast((step) => step.calls.length === 0 && step.kind === spanKind.client)
}
