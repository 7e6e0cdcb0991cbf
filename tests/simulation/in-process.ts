// The service in this process, for simulations of thousands of steps: one engine stays open while the service
// above it is stopped and started again.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { type App, createApp } from '../../server/app.ts'
import { BackupRegister } from '../../server/backup/register.ts'
import { restoreBackup } from '../../server/backup/restore.ts'
import { type Config, readConfig } from '../../server/config.ts'
import { openControlAt } from '../../server/control/control-address.ts'
import type { Control } from '../../server/control/database.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { openChdb } from '../../server/telemetry/chdb.ts'
import type { TenantPlace } from '../../server/telemetry/engine.ts'
import type { LocalEngine } from '../../server/telemetry/engine-files.ts'
import type { TableName } from '../../server/telemetry/schema/tables.ts'
import { raw } from '../../server/telemetry/sql.ts'
import { silent, temporaryFolder } from '../fixtures.ts'
import { Failpoints, remainsIn, removeReplaced, ServiceRun, SimulatedClock } from './service-run.ts'
import type { Answered, Asked, Fault, Subject } from './subject.ts'
import { type Counted, countedOf, type ListedRow, listRows, tableNames } from './telemetry.ts'

/** One start of the service. */
interface Run {
  readonly app: App
  readonly serviceRun: ServiceRun
  readonly failpoints: Failpoints
  readonly control: Control
}

export class InProcess implements Subject {
  readonly #folder = temporaryFolder()
  readonly #clock: SimulatedClock
  readonly #config: Config
  #engine: LocalEngine | null = null
  #run: Run | null = null
  #round: Promise<void> = Promise.resolve()

  constructor(startMs: number) {
    this.#clock = new SimulatedClock(startMs)
    this.#config = readConfig({
      LETHE_DATA_DIR: this.#folder,
      LETHE_PORT: '0',
      LETHE_RESERVE_MB: '1',
      LETHE_GRPC_PORT: 'off',
      LETHE_ENGINE_MEMORY_MB: '1024',
      LETHE_COMMIT_DELAY_MS: '0',
    })
  }

  get app(): App {
    return this.#now.app
  }

  get control(): Control {
    return this.#now.control
  }

  get #now(): Run {
    if (this.#run === null) throw new Error('The service is not started.')
    return this.#run
  }

  nowMs(): number {
    return this.#clock.nowMs()
  }

  async advance(ms: number): Promise<void> {
    this.#clock.advance(ms)
  }

  async setClock(byMs: number): Promise<void> {
    this.#clock.set(byMs)
  }

  async start(beforeReady: (app: App) => Promise<void> = async () => {}): Promise<void> {
    const serviceRun = new ServiceRun(this.#clock)
    const failpoints = new Failpoints()
    const app = await createApp({
      config: this.#config,
      clock: serviceRun.clock,
      logger: silent,
      failpoint: failpoints.pass,
      // The model is compared while an erasure is paused; another one beside it would continue meanwhile.
      erasing: { attemptsAtOnce: 1, fewRows: 0 },
      isManual: true,
      openEngine: async (options) => {
        const engine = this.#engine ?? (await openChdb(options))
        this.#engine = engine
        this.#clock.hurry = () => removeReplaced(engine)
        return serviceRun.engine(engine)
      },
    })
    this.#run = { app, serviceRun, failpoints, control: openControlAt(this.#config.control) }
    await app.start(() => beforeReady(app))
  }

  async ask(method: 'GET' | 'POST' | 'PUT' | 'PATCH', path: string, asked: Asked): Promise<Answered> {
    const answer = await this.app.http.inject({
      method,
      url: path,
      headers: {
        authorization: `Bearer ${asked.secret}`,
        ...(asked.json !== undefined && { 'content-type': 'application/json' }),
        ...asked.headers,
      },
      ...(asked.json !== undefined && { payload: JSON.stringify(asked.json) }),
    })
    return { status: answer.statusCode, body: answer.body === '' ? null : JSON.parse(answer.body) }
  }

  async visible(place: TenantPlace, names: readonly TableName[]): Promise<Counted> {
    if (names.length === 0) return new Map()
    const rows = await this.app
      .readerOf(place)
      .rows<ListedRow>((from) => listRows(names, (name) => from(name)))
    return countedOf(rows).get(place.tenantId) ?? new Map()
  }

  async stored(): Promise<ReadonlyMap<string, Counted>> {
    const rows = (await this.#engine?.select<ListedRow>(listRows(tableNames, raw))) ?? []
    return countedOf(rows)
  }

  round(fault: Fault | null): Promise<'ended' | 'standing'> {
    const { app, failpoints } = this.#now
    this.#round = failpoints.during(fault, () => app.round())
    return Promise.race([this.#round.then(() => 'ended' as const), failpoints.standing])
  }

  faultedAt(): string | null {
    return this.#now.failpoints.faultedAt
  }

  resume(how: 'throw' | 'continue'): Promise<void> {
    this.#now.failpoints.goOn(how)
    return this.#round
  }

  async crash(): Promise<void> {
    const { app, control, serviceRun } = this.#now
    await serviceRun.end()
    app.http.server.close()
    await control.destroy()
    this.#run = null
    await this.start()
  }

  async restart(): Promise<void> {
    const { app, control, serviceRun } = this.#now
    await app.close()
    await serviceRun.end()
    await control.destroy()
    this.#run = null
    await this.start()
  }

  async backUp(keepDays = 3650): Promise<string | null> {
    const register = new BackupRegister(this.control, this.#clock)
    const backupId = await register.request(this.#config.backupDir, keepDays, operatorActor('simulation'))
    await this.app.takeBackups()
    return (await register.find(backupId))?.status === 'ready' ? join(this.#config.backupDir, backupId) : null
  }

  async restore(backup: string, isControlReplaced: boolean): Promise<void> {
    await this.#stop()
    await restoreBackup({
      backup,
      dataDir: this.#config.dataDir,
      control: this.#config.control,
      backupDir: this.#config.backupDir,
      isControlReplaced,
      isJournalLost: false,
      engineMemoryBytes: this.#config.engineMemoryBytes,
      failpoint: async () => {},
    })
    await this.start()
  }

  async remains(): Promise<readonly string[]> {
    return this.#engine === null ? [] : remainsIn(this.#engine)
  }

  async end(): Promise<void> {
    await this.#stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #stop(): Promise<void> {
    if (this.#run === null) return
    await this.#run.app.close()
    await this.#run.control.destroy()
    this.#run = null
    await this.#engine?.close()
    this.#engine = null
  }
}
