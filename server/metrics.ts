// The service's own metrics in the Prometheus format. Names follow the Prometheus conventions (unit last, totals
// end in _total). Nothing is labelled by organisation: this page is for whoever operates the machine, and public.

import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { Clock } from './core/clock.ts'
import { workingStatuses } from './deletion/deletion.ts'
import type { DeletionRequests } from './deletion/requests.ts'
import type { BodyBudget } from './ingest/body-budget.ts'
import type { IngestWriter } from './ingest/writer.ts'
import type { Signal } from './telemetry/schema/tables.ts'

export interface MetricSources {
  readonly writer: IngestWriter
  readonly budget: BodyBudget
  readonly requests: DeletionRequests
  readonly clock: Clock
  readonly isClockInDoubt: () => boolean
}

export class ServiceMetrics {
  readonly registry = new Registry()
  readonly #accepted: Counter
  readonly #rejected: Counter

  constructor({ writer, budget, requests, clock, isClockInDoubt }: MetricSources) {
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
    addIngestMetrics(writer, budget, registers)
    new Gauge({
      name: 'lethe_deletion_pending',
      help: 'Deletion requests that are not finished.',
      registers,
      async collect() {
        this.set((await requests.inStatus(workingStatuses)).length)
      },
    })
    new Gauge({
      name: 'lethe_deletion_failed',
      help: 'Deletion requests that were given up and wait for a person.',
      registers,
      async collect() {
        this.set((await requests.inStatus(['failed'])).length)
      },
    })
    new Gauge({
      name: 'lethe_deletion_oldest_pending_seconds',
      help: 'Age of the oldest deletion request that is not finished; 0 where there is none.',
      registers,
      async collect() {
        const [oldest] = await requests.inStatus(workingStatuses)
        this.set(oldest === undefined ? 0 : Math.max(0, (clock.nowMs() - oldest.createdAtMs) / 1000))
      },
    })
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
    help: 'Group commits the engine refused; their senders were told to retry.',
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
      this.set(budget.heldBytes)
    },
  })
}
