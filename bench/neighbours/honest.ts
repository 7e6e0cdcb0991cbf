// The honest organisation: telemetry at a steady rate over HTTP, a body a second over gRPC, a chart a second
// on a new connection, an erasure of a minute once a minute, due detectors. Telemetry is sent on schedule
// whatever the responses do, and its latency is measured from the scheduled time, so that a pause of the
// service shows in all requests that waited.

import { Agent, type RequestOptions } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import grpc from '@grpc/grpc-js'
import { errorCatalogue } from '../../contract/errors.ts'
import type { Role } from '../../contract/role.ts'
import { type Answer, ask } from '../http-client.ts'
import { type Body, gaugeBody, honestMetric, honestPoints, instant, nowMs } from './rows.ts'
import type { Service } from './service.ts'
import type { World } from './world.ts'

/**
 * Its activities, each with its own latencies. `erasure` is until the request is accepted, `erased` until it
 * is completed; `detector` is from when it is due until it has run.
 */
export const activities = ['ingest', 'grpc', 'chart', 'erasure', 'erased', 'detector'] as const
export type Activity = (typeof activities)[number]

export interface Sample {
  readonly activity: Activity
  /** When it was sent, or scheduled, on the clock of `performance.now()`. */
  readonly sentMs: number
  readonly ms: number
  /** Null for the expected response; otherwise a status, or a system error code. */
  readonly refusal: string | null
}

/**
 * The refusal of telemetry while an erasure of the same organisation swaps its data: a client sends it again.
 * No neighbour causes it, so it does not count as a refusal.
 */
export const ownErasure = 'own erasure'

/** When a client gives up: longer than a person waits for a chart. Waiting for a connection is included. */
const patienceMs = 20_000

/** Default number of connections of a Collector. */
const consumers = 10

/** Limit of waiting for the end of an erasure or the run of a detector. */
const workLimitMs = 45_000

export class Honest {
  readonly samples: Sample[] = []
  /** Interval of charts; waiting for recovery uses a shorter one. */
  chartEveryMs = 1000
  readonly #world: World
  readonly #service: Service
  readonly #agent = new Agent({ keepAlive: true, maxSockets: consumers })
  readonly #grpc: grpc.Client
  readonly #loops: Promise<unknown>[] = []
  readonly #pending = new Set<Promise<unknown>>()
  #isStopping = false
  #erasedMinutes = 0

  constructor(world: World, service: Service) {
    this.#world = world
    this.#service = service
    const address = `${service.host}:${service.grpcPort}`
    this.#grpc = new grpc.Client(address, grpc.credentials.createInsecure(), {
      'grpc.max_reconnect_backoff_ms': 500,
      'grpc.initial_reconnect_backoff_ms': 100,
    })
  }

  /** Begins to send bodies at a rate per second, and to request charts. */
  begin(bodies: readonly Body[], perSecond: number): void {
    this.#loops.push(this.#ingest(bodies, perSecond), this.#export(), this.#charts())
  }

  /** Sends as fast as responses arrive, and returns how many bodies a second were accepted. */
  async capacity(bodies: readonly Body[], clients: number, seconds: number): Promise<number> {
    const startMs = performance.now()
    let [next, taken] = [0, 0]
    const loop = async () => {
      while (performance.now() - startMs < seconds * 1000) {
        const { status } = await this.#post(bodies[next++ % bodies.length])
        if (status === 200) taken++
        else await sleep(100)
      }
    }
    this.#agent.maxSockets = clients
    await Promise.all(Array.from({ length: clients }, loop))
    this.#agent.maxSockets = consumers
    return taken / ((performance.now() - startMs) / 1000)
  }

  /** Erases the next minute of the history and waits until it is completed, or until the limit. */
  async erase(): Promise<void> {
    const fromMs = this.#world.historyStartMs + this.#erasedMinutes++ * 60_000
    const path = '/usage/storage/deletions'
    const json = {
      scope: 'range',
      confirm: this.#world.honest.tenantId,
      range_start: instant(fromMs),
      range_end: instant(fromMs + 60_000),
    }
    const sentMs = performance.now()
    const body = Buffer.from(JSON.stringify(json))
    const answer = await this.#ask('owner', { method: 'POST', path, agent: this.#agent }, body)
    const isTaken = answer.status === 202 || answer.status === 200
    this.#record('erasure', sentMs, isTaken ? null : refusalOf(answer))
    if (!isTaken) return
    const { request_id: id }: { request_id: string } = JSON.parse(answer.text)
    while (performance.now() - sentMs < workLimitMs) {
      await sleep(100)
      const looked = await this.#ask('owner', { method: 'GET', path: `${path}/${id}`, agent: this.#agent })
      if (looked.status !== 200) continue
      const { status }: { status: string } = JSON.parse(looked.text)
      if (status === 'completed') return this.#record('erased', sentMs, null)
      if (status === 'failed' || status === 'incomplete') return this.#record('erased', sentMs, status)
    }
    this.#record('erased', sentMs, 'not erased')
  }

  /** Creates a detector, which is due at once, and waits until it has run. */
  async detect(): Promise<void> {
    const path = '/anomalies/detectors'
    const json = {
      name: `bench at ${nowMs()}`,
      metric_key: honestMetric,
      method_key: 'robust_band',
      scope: { group_by: 'route' },
      window_minutes: 60,
      schedule_minutes: 1,
    }
    const sentMs = performance.now()
    const body = Buffer.from(JSON.stringify(json))
    const answer = await this.#ask('member', { method: 'POST', path, agent: this.#agent }, body)
    if (answer.status !== 201) return this.#record('detector', sentMs, refusalOf(answer))
    const { id }: { id: string } = JSON.parse(answer.text)
    while (performance.now() - sentMs < workLimitMs) {
      await sleep(200)
      const looked = await this.#ask('member', { method: 'GET', path: `${path}/${id}`, agent: this.#agent })
      if (looked.status !== 200) continue
      const { last_run_at: lastRunAt }: { last_run_at: string | null } = JSON.parse(looked.text)
      if (lastRunAt !== null) return this.#record('detector', sentMs, null)
    }
    this.#record('detector', sentMs, 'not run')
  }

  /** Begins nothing more, and waits for requests in progress. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await Promise.all(this.#loops)
    await Promise.all(this.#pending)
    this.#agent.destroy()
    this.#grpc.close()
  }

  async #ingest(bodies: readonly Body[], perSecond: number): Promise<void> {
    const startMs = performance.now()
    for (let sent = 0; !this.#isStopping; sent++) {
      const dueMs = startMs + (sent / perSecond) * 1000
      const waitMs = dueMs - performance.now()
      if (waitMs > 1) await sleep(waitMs)
      const body = bodies[sent % bodies.length]
      this.#follow(
        this.#post(body).then((answer) =>
          this.#record('ingest', dueMs, answer.status === 200 ? null : refusalOf(answer)),
        ),
      )
    }
  }

  #post(body: Body | undefined): Promise<Answer> {
    if (body === undefined) throw new Error('There is nothing to send.')
    const headers = { 'content-type': 'application/x-protobuf' }
    const options = { method: 'POST', path: `/v1/${body.signal}`, agent: this.#agent, headers }
    return this.#ask('ingest', options, body.bytes)
  }

  async #export(): Promise<void> {
    while (!this.#isStopping) {
      const sentMs = performance.now()
      const { bytes } = gaugeBody('checkout', honestMetric, honestPoints(nowMs()))
      this.#follow(this.#call(bytes).then((refusal) => this.#record('grpc', sentMs, refusal)))
      await sleep(1000)
    }
  }

  #call(message: Buffer): Promise<string | null> {
    const metadata = new grpc.Metadata()
    metadata.set('authorization', `Bearer ${this.#world.honest.secrets.ingest}`)
    const path = '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export'
    const same = (bytes: Buffer) => bytes
    const options = { deadline: nowMs() + patienceMs, waitForReady: true }
    return new Promise((resolve) => {
      this.#grpc.makeUnaryRequest(path, same, same, message, metadata, options, (error) =>
        resolve(error === null ? null : grpcRefusal(error)),
      )
    })
  }

  async #charts(): Promise<void> {
    while (!this.#isStopping) {
      const sentMs = performance.now()
      const path = `/telemetry/series?metric_key=${honestMetric}&group_by=route&step_seconds=60`
      const answer = await this.#ask('viewer', { method: 'GET', path, agent: false })
      this.#record('chart', sentMs, answer.status === 200 ? null : refusalOf(answer))
      const restMs = sentMs + this.chartEveryMs - performance.now()
      if (restMs > 0) await sleep(restMs)
    }
  }

  #follow(work: Promise<unknown>): void {
    this.#pending.add(work)
    void work.finally(() => this.#pending.delete(work))
  }

  #record(activity: Activity, sentMs: number, refusal: string | null): void {
    this.samples.push({ activity, sentMs, ms: performance.now() - sentMs, refusal })
  }

  /**
   * Never rejects. If the service had closed a kept connection, the request is sent again on a new one, as
   * every client does; that is not a refusal.
   */
  async #ask(
    role: Role,
    options: RequestOptions & { readonly path: string },
    body?: Buffer,
  ): Promise<Answer> {
    const { host, port } = this.#service
    const headers = {
      ...options.headers,
      authorization: `Bearer ${this.#world.honest.secrets[role]}`,
      ...(body !== undefined && { 'content-length': body.length }),
      ...(body !== undefined && options.headers === undefined && { 'content-type': 'application/json' }),
    }
    const asked = { host, port, ...options, headers }
    const first = await ask(asked, body, patienceMs)
    return first.wasClosed ? ask({ ...asked, agent: false }, body, patienceMs) : first
  }
}

function grpcRefusal({ code, details }: grpc.ServiceError): string {
  return details.includes(errorCatalogue.erasing.sentence) ? ownErasure : grpc.status[code]
}

/**
 * Returns the status, and the stable code where the body has one. OTLP bodies have none; there the sentence
 * of the catalogue identifies {@link ownErasure}.
 */
function refusalOf({ status, text }: Answer): string {
  if (status === 0) return text
  if (text.includes(errorCatalogue.erasing.sentence)) return ownErasure
  const code = /"code":"([a-z_]+)"/.exec(text)?.[1]
  return code === undefined ? String(status) : `${status} ${code}`
}
