// The service's own metrics in the Prometheus format. Names follow the Prometheus conventions (unit last,
// totals end in _total). Nothing is labelled by organisation or address: this page is for operators, and open
// to everyone who reaches its listener.

import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { ControlWatch } from './control/control-watch.ts'
import type { Control } from './control/database.ts'
import { figuresOf } from './control/dialect.ts'
import { AppError } from './core/app-error.ts'
import type { Clock } from './core/clock.ts'
import type { RequestQueries } from './deletion/requests/queries.ts'
import { workingStatuses } from './deletion/requests/states.ts'
import type { ClientLimits } from './http/client-limits.ts'
import type { Connections } from './http/limits/connections.ts'
import type { ResponsesInProgress } from './http/limits/responses-in-progress.ts'
import type { BodyBudget } from './ingest/body-budget.ts'
import type { IngestWriter } from './ingest/rows/writer.ts'
import type { Signal } from './telemetry/schema/tables.ts'

interface MetricSources {
  readonly config: { readonly restarts: { readonly crashed: number; readonly hung: number } }
  readonly writer: IngestWriter
  readonly budget: BodyBudget
  readonly requests: RequestQueries
  readonly control: Control
  readonly controlWatch: ControlWatch
  readonly disk: { readonly fault: string | null; readonly freeBytes: number }
  readonly clients: ClientLimits
  readonly connections: Connections
  readonly answers: ResponsesInProgress
  readonly clock: Clock
  readonly isClockInDoubt: () => boolean
}

export class ServiceMetrics {
  readonly registry = new Registry()
  readonly #accepted: Counter
  readonly #rejected: Counter

  constructor(sources: MetricSources) {
    const { writer, budget, requests, disk, clock, isClockInDoubt } = sources
    const registers = [this.registry]
    collectDefaultMetrics({ register: this.registry })
    const labelNames = ['signal']
    this.#accepted = new Counter({
      name: 'lethe_ingest_records_accepted_total',
      help: 'Records committed, by signal.',
      labelNames,
      registers,
    })
    this.#rejected = new Counter({
      name: 'lethe_ingest_records_rejected_total',
      help: 'Records left out of otherwise accepted exports, by signal.',
      labelNames,
      registers,
    })
    addRestarts(sources, registers)
    addIngestMetrics(writer, budget, registers)
    addDiskMetrics(disk, registers)
    addControlMetrics(sources, registers)
    addHttpMetrics(sources, registers)
    addAnswerMetrics(sources, registers)
    addDeletionMetrics(requests, clock, registers)
    new Gauge({
      name: 'lethe_clock_in_doubt',
      help: '1 while retention, expiry of backups and delayed deletions wait for "lethe clock confirm", because the clock jumped.',
      registers,
      collect() {
        this.set(isClockInDoubt() ? 1 : 0)
      },
    })
  }

  countExport(signal: Signal, accepted: number, rejected: number): void {
    this.#accepted.inc({ signal }, accepted)
    this.#rejected.inc({ signal }, rejected)
  }
}

/** While the control plane does not answer these have no value, and the page has all others. */
function addDeletionMetrics(requests: RequestQueries, clock: Clock, registers: Registry[]): void {
  const collectOf = (read: () => Promise<number>) =>
    async function collect(this: Gauge): Promise<void> {
      try {
        this.set(await read())
      } catch (error) {
        if (!(error instanceof AppError)) throw error
        this.remove()
      }
    }
  new Gauge({
    name: 'lethe_deletion_pending',
    help: 'Deletion requests that are not finished.',
    registers,
    collect: collectOf(async () => (await requests.inStatus(workingStatuses)).length),
  })
  new Gauge({
    name: 'lethe_deletion_failed',
    help: 'Deletion requests that were given up and wait for a person.',
    registers,
    collect: collectOf(async () => (await requests.inStatus(['failed'])).length),
  })
  new Gauge({
    name: 'lethe_deletion_oldest_pending_seconds',
    help: 'Age of the oldest deletion request that is not finished; 0 where there is none.',
    registers,
    collect: collectOf(async () => {
      const [oldest] = await requests.inStatus(workingStatuses)
      return oldest === undefined ? 0 : Math.max(0, (clock.nowMs() - oldest.createdAtMs) / 1000)
    }),
  })
}

function addControlMetrics({ control, controlWatch }: MetricSources, registers: Registry[]): void {
  const figures = figuresOf(control)
  new Gauge({
    name: 'lethe_control_up',
    help: '1 where the control-plane database answers, 0 where it does not.',
    registers,
    async collect() {
      this.set((await controlWatch.fault()) === null ? 1 : 0)
    },
  })
  new Gauge({
    name: 'lethe_control_connections',
    help: 'Open connections to the control-plane database.',
    registers,
    collect() {
      this.set(figures.connections.open)
    },
  })
  new Gauge({
    name: 'lethe_control_waiting',
    help: 'Statements that wait for a free connection to the control-plane database.',
    registers,
    collect() {
      this.set(figures.connections.waiting)
    },
  })
  new Counter({
    name: 'lethe_control_statements_total',
    help: 'Statements sent to the control-plane database.',
    registers,
    collect() {
      this.reset()
      this.inc(figures.statements)
    },
  })
  new Counter({
    name: 'lethe_control_failures_total',
    help: 'Statements that the control-plane database refused or did not answer: busy, full or unavailable.',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset()
      for (const [reason, count] of Object.entries(figures.failures)) this.inc({ reason }, count)
    },
  })
}

function addRestarts({ config }: MetricSources, registers: Registry[]): void {
  const restarts = new Counter({
    name: 'lethe_restarts_total',
    help: 'How often the watchdog started the service again: it had ended by a signal (crashed), or its event loop hung (hung).',
    labelNames: ['reason'],
    registers,
  })
  for (const [reason, count] of Object.entries(config.restarts)) restarts.inc({ reason }, count)
}

function addDiskMetrics(disk: MetricSources['disk'], registers: Registry[]): void {
  new Gauge({
    name: 'lethe_disk_writable',
    help: '1 where the disk accepts writes, 0 where it is full or failing and telemetry is refused.',
    registers,
    collect() {
      this.set(disk.fault === null ? 1 : 0)
    },
  })
  new Gauge({
    name: 'lethe_disk_free_bytes',
    help: 'Bytes that may still be written beside the reserve, on the fullest disk of telemetry and control plane.',
    registers,
    collect() {
      this.set(disk.freeBytes)
    },
  })
}

function addIngestMetrics(writer: IngestWriter, budget: BodyBudget, registers: Registry[]): void {
  new Counter({
    name: 'lethe_ingest_commits_total',
    help: 'Group commits made.',
    registers,
    collect() {
      this.reset()
      this.inc(writer.totals.commits)
    },
  })
  new Counter({
    name: 'lethe_ingest_commits_failed_total',
    help: 'Group commits the engine refused; their senders got a response that asks for a retry.',
    registers,
    collect() {
      this.reset()
      this.inc(writer.totals.failedCommits)
    },
  })
  new Gauge({
    name: 'lethe_ingest_buffered_bytes',
    help: 'Encoded rows that wait or are being committed.',
    registers,
    collect() {
      this.set(writer.bufferedBytes)
    },
  })
  new Gauge({
    name: 'lethe_ingest_body_bytes',
    help: 'Request bodies that are arriving or wait to be decoded.',
    registers,
    collect() {
      this.set(budget.reservedBytes)
    },
  })
}

function addHttpMetrics({ clients, connections }: MetricSources, registers: Registry[]): void {
  new Counter({
    name: 'lethe_authentication_failures_total',
    help: 'HTTP and gRPC requests that lack a required valid access token, by the code of the refusal.',
    labelNames: ['code'],
    registers,
    collect() {
      this.reset()
      for (const [code, count] of clients.failures) this.inc({ code }, count)
    },
  })
  new Counter({
    name: 'lethe_requests_throttled_total',
    help: 'Requests refused with 429 because their address sent too many: without a token (anonymous) or with a wrong one (failing).',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset()
      for (const [reason, count] of Object.entries(clients.throttled)) this.inc({ reason }, count)
    },
  })
  new Gauge({
    name: 'lethe_http_connections',
    help: 'Open connections of the main listener.',
    registers,
    collect() {
      this.set(connections.size)
    },
  })
  new Counter({
    name: 'lethe_http_connections_closed_total',
    help: 'Connections closed because there were too many: not accepted (refused), or closed for others (evicted).',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset()
      this.inc({ reason: 'refused' }, connections.totals.refused)
      this.inc({ reason: 'evicted' }, connections.totals.evicted)
    },
  })
  new Counter({
    name: 'lethe_http_requests_dropped_total',
    help: 'Requests that were not begun because their connection had ended.',
    registers,
    collect() {
      this.reset()
      this.inc(connections.totals.dropped)
    },
  })
}

function addAnswerMetrics({ answers }: MetricSources, registers: Registry[]): void {
  new Gauge({
    name: 'lethe_http_answer_bytes_unread',
    help: 'Bytes of responses that their clients have not read to the end.',
    registers,
    collect() {
      this.set(answers.unreadBytes)
    },
  })
  new Counter({
    name: 'lethe_http_answers_unread_total',
    help: 'Effects of unread responses: a request refused with 429 (refused), or a connection closed, of a response that was not read (given_up) or may no longer be sent (outdated).',
    labelNames: ['outcome'],
    registers,
    collect() {
      this.reset()
      this.inc({ outcome: 'refused' }, answers.totals.refused)
      this.inc({ outcome: 'given_up' }, answers.totals.givenUp)
      this.inc({ outcome: 'outdated' }, answers.totals.outdated)
    },
  })
}
