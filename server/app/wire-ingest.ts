// Wires the ingest of telemetry by OTLP/HTTP, OTLP/gRPC and Prometheus remote write: one writer, one quota,
// one budget for bodies, one intake.

import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { type Config, ConfigError } from '../config.ts'
import type { Control } from '../control/database.ts'
import { type Clock, elapsedMs } from '../core/clock.ts'
import type { Headroom } from '../core/turns/headroom.ts'
import { LoopTurns } from '../core/turns/loop-turns.ts'
import { ThreadTurns } from '../core/turns/thread-turns.ts'
import type { DiskWatch } from '../disk/disk-watch.ts'
import type { ClientLimits } from '../http/client-limits.ts'
import type { RefusalPace } from '../http/limits/refusal-pace.ts'
import type { OnRefusal } from '../http/refused-request.ts'
import { BodyBudget } from '../ingest/body-budget.ts'
import { Decoder } from '../ingest/decoder.ts'
import { GrpcIngest } from '../ingest/grpc.ts'
import { Intake, type IntakeOptions } from '../ingest/intake.ts'
import { addRemoteWriteRoute } from '../ingest/prometheus-routes.ts'
import { ReadTurns } from '../ingest/read-turns.ts'
import { addIngestRoutes } from '../ingest/routes.ts'
import { DistantWeeks } from '../ingest/rows/distant-weeks.ts'
import { IngestWriter } from '../ingest/rows/writer.ts'
import type { TelemetryEngine } from '../telemetry/engine.ts'
import type { LocalEngineFiles } from '../telemetry/engine-files.ts'
import type { TelemetryGate } from '../telemetry/gate.ts'
import type { ErasureLocks } from '../telemetry/placement-locks.ts'
import { IngestQuotas } from '../usage/ingest-quotas.ts'
import { QuotaStore } from '../usage/quota-store.ts'

interface IngestNeeds {
  readonly config: Config
  readonly clock: Clock
  readonly logger: FastifyBaseLogger
  readonly engine: TelemetryEngine
  readonly files: LocalEngineFiles
  readonly control: Control
  readonly gate: TelemetryGate
  readonly locks: ErasureLocks
  readonly disk: DiskWatch
  readonly onLate: IntakeOptions['onLate']
  readonly clients: ClientLimits
  readonly turns: LoopTurns
  readonly refusalPace: RefusalPace
  readonly headroom: Headroom
  readonly isReady: () => boolean
  readonly onRefusal: OnRefusal
}

export interface WiredIngest {
  readonly writer: IngestWriter
  readonly quotas: IngestQuotas
  readonly budget: BodyBudget
  /** Null where it is switched off. */
  readonly grpc: GrpcIngest | null
  /**
   * Starts gRPC and returns its address; null where it is switched off. Throws ConfigError where the port is
   * in use.
   */
  listen(): Promise<string | null>
  addRoutes(http: FastifyInstance, onExport: IntakeOptions['onExport']): Promise<void>
  /** Commits what was accepted and writes counts; call it after the listeners have stopped. */
  close(): Promise<void>
}

/**
 * Bodies are decoded in a round of the loop until this much time is used, milliseconds: a few of the
 * usual 300 kB. A round also looks at all connections, which costs more where each has only one body.
 */
const decodeTurnMs = 8

export function wireIngest(needs: IngestNeeds): WiredIngest {
  const { clock, config, control, disk, gate, headroom, logger } = needs
  const writer = new IngestWriter({
    ...needs,
    locks: needs.locks.writes,
    sync: () => needs.files.sync(),
    commitDelayMs: config.commitDelayMs,
    bufferBytes: config.ingestBufferBytes,
    areCoresShort: () => headroom.areCoresShort(),
    faultBehind: (error) => disk.faultBehind(error),
  })
  const quotas = new IngestQuotas({ store: new QuotaStore(control, clock, config.quota), clock, logger })
  const budget = new BodyBudget(config.ingestBufferBytes, clock)
  let onExport: IntakeOptions['onExport'] = () => {}
  // Decoding has a queue of its own. In one queue with the other steps of requests, acknowledgements wait
  // behind bodies, senders send later, and commits are half as large (docs/decisions/0034).
  const decoder = new Decoder({
    loop: new LoopTurns({ nowMs: elapsedMs, turnMs: decodeTurnMs, headroom }),
    thread: new ThreadTurns({ nowMs: elapsedMs, headroom }),
    nowMs: elapsedMs,
  })
  const intake = new Intake({
    writer,
    weeks: new DistantWeeks(needs),
    turns: needs.turns,
    decoder,
    quota: quotas,
    lateSelections: (tenantId) => gate.lateSelections(tenantId),
    onLate: needs.onLate,
    requireRoom: () => disk.requireRoom(),
    onExport: (...counts) => onExport(...counts),
  })
  const reads = new ReadTurns(new LoopTurns({ nowMs: elapsedMs, headroom }))
  const shared = { intake, clock, budget, reads, bodyLimitBytes: config.ingestBodyBytes }
  const { clients, isReady, onRefusal, refusalPace, turns } = needs
  const { grpcPort, host } = config
  const grpc =
    grpcPort === null
      ? null
      : new GrpcIngest({ ...shared, logger, clients, isReady, turns, refusalPace, onRefusal })
  return {
    writer,
    quotas,
    budget,
    grpc,
    async listen() {
      if (grpc === null || grpcPort === null) return null
      try {
        return `${host.includes(':') ? `[${host}]` : host}:${await grpc.listen(host, grpcPort)}`
      } catch (cause) {
        throw new ConfigError(
          `OTLP/gRPC can't listen on ${host} port ${grpcPort}; choose another with LETHE_GRPC_PORT, or off.`,
          { cause },
        )
      }
    },
    async addRoutes(http, listener) {
      onExport = listener
      await addIngestRoutes(http, shared)
      await addRemoteWriteRoute(http, shared)
    },
    async close() {
      await Promise.all([budget.close(), decoder.close()])
      await writer.close()
      await quotas.close()
    },
  }
}
