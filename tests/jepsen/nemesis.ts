// Carries out the acts of a schedule against the service, and keeps it running in between: a process that
// ends by itself is reported and started again. One act at a time; only a backup continues during the acts
// after it.

import { setTimeout as sleep } from 'node:timers/promises'
import { backupsIn, type Client, type Traffic } from './clients.ts'
import type { SmallDisk, SteppedClock } from './machine-faults.ts'
import type { NumberedRows } from './numbered-rows.ts'
import type { Recorder } from './recorder.ts'
import type { Act } from './schedule.ts'
import { searchFiles } from './search-files.ts'
import { lethe, type ServiceProcess } from './service-process.ts'

/** On a machine with other load. A longer start is reported. */
const readyWithinMs = 120_000
const recoveredWithinMs = 60_000
/** Longer than any run, whatever the clock is set to. */
const keepDays = '3650'
/** Erasures that complete between two searches through the files. */
const erasuresPerSearch = 10

interface NemesisDeps {
  readonly service: ServiceProcess
  readonly clients: readonly Client[]
  readonly traffic: Traffic
  readonly recorder: Recorder
  readonly rows: NumberedRows
  readonly env: Readonly<Record<string, string>>
  readonly dataDir: string
  readonly backupDir: string
  readonly clock: SteppedClock
  /** Null where this machine does not support one. */
  readonly disk: SmallDisk | null
}

type Restore = Extract<Act, { act: 'restore' }>

interface TakenBackup {
  readonly id: string
  /** Number of exports of each client's ledger that are older than it. */
  readonly exports: readonly number[]
}

export class Nemesis {
  readonly #deps: NemesisDeps
  readonly #backups: TakenBackup[] = []
  #backup: Promise<void> = Promise.resolve()
  #isBackingUp = false
  /**
   * Waits until the backup in progress has ended, because its command would open the folder of a stopped
   * service.
   */
  #restoreLater: Restore | null = null
  #searchedAt = 0

  constructor(deps: NemesisDeps) {
    this.#deps = deps
  }

  async perform(act: Act): Promise<void> {
    const { recorder } = this.#deps
    const { atS: _, act: name, ...how } = act
    recorder.note(`${name} ${JSON.stringify(how)}`)
    if (act.act === 'kill') await this.#kill(act)
    else if (act.act === 'stop') await this.#stop()
    else if (act.act === 'pause') await this.#pause(act.ms)
    else if (act.act === 'backup') await this.#beginBackup()
    else if (act.act === 'restore') await this.#restore(act)
    else if (act.act === 'clock') await this.#step(act.seconds)
    else if (act.act === 'year') await this.#year(act)
    else await this.#fillDisk(act)
    await this.keepUp()
    if (this.#restoreLater !== null && !this.#isBackingUp) await this.#restore(this.#restoreLater)
    await this.#searchNowAndThen()
  }

  /** Starts the service where it isn't running, and waits until it is ready. */
  async keepUp(): Promise<void> {
    const { recorder, service, traffic } = this.#deps
    if (service.isRunning) return
    traffic.isServed = false
    recorder.begin('start')
    try {
      for (let tries = 0; tries < 10; tries++) {
        service.launch()
        traffic.isServed = await service.ready(readyWithinMs)
        if (traffic.isServed) return
        if (service.isRunning) {
          recorder.violate('not ready', `after ${readyWithinMs / 1000} s: ${service.logTail()}`)
          await this.#end('SIGKILL')
        }
        await sleep(1500)
      }
      throw new Error(`The service does not start any more: ${service.logTail()}`)
    } finally {
      recorder.end('start')
    }
  }

  async #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const { recorder, service, traffic } = this.#deps
    recorder.begin('start')
    const ending = service.end(signal)
    traffic.isServed = false
    const isInTime = await ending
    recorder.end('start')
    recorder.event({ f: 'process-ended' })
    if (!isInTime) recorder.violate('does not stop', `${signal} did not end it: ${service.logTail()}`)
  }

  async #kill({ again, downMs }: Extract<Act, { act: 'kill' }>): Promise<void> {
    const { recorder, service } = this.#deps
    recorder.count('kills')
    await this.#end('SIGKILL')
    await sleep(downMs)
    if (!again) return
    recorder.count('kills')
    service.launch()
    await sleep(300 + downMs)
    await this.#end('SIGKILL')
  }

  async #stop(): Promise<void> {
    this.#deps.recorder.count('stops')
    await this.#end('SIGTERM')
  }

  async #pause(ms: number): Promise<void> {
    const { recorder, service } = this.#deps
    recorder.count('pauses')
    recorder.begin('pause')
    service.signal('SIGSTOP')
    await sleep(ms)
    service.signal('SIGCONT')
    recorder.end('pause')
  }

  // Backups

  async #beginBackup(): Promise<void> {
    const { clients, env, recorder } = this.#deps
    if (this.#isBackingUp) return recorder.note('a backup is in progress')
    this.#isBackingUp = true
    const exports = clients.map((client) => client.exports.length)
    recorder.begin('backup')
    this.#backup = recorder
      .run({ f: 'backup' }, async () => {
        const { code, error, out } = await lethe(env, ['backup', 'create', '--keep-days', keepDays])
        const id = /^(bak_\S+)/m.exec(out)?.[1]
        recorder.count(code === 0 ? 'backups' : 'backups failed')
        if (code !== 0 || id === undefined) return ['fail', { note: `${code} ${error.slice(-400)}` }]
        this.#backups.push({ id, exports })
        return ['ok', { backup: id }]
      })
      .then(([outcome, { note = '' }]) => {
        this.#isBackingUp = false
        recorder.end('backup')
        if (outcome !== 'ok') recorder.note(`the backup failed: ${note}`)
      })
  }

  async #restore(act: Restore): Promise<void> {
    const { clients, env, recorder, traffic } = this.#deps
    const { back, controlPlane, kill } = act
    this.#restoreLater = this.#isBackingUp ? act : null
    if (this.#isBackingUp) return recorder.note('it waits for the backup')
    const there = backupsIn(this.#deps.backupDir)
    const whole = this.#backups.filter(({ id }) => there.includes(id))
    const chosen = whole.at(-1 - Math.min(back, whole.length - 1))
    if (chosen === undefined) return recorder.note('there is no backup to restore')
    await traffic.close()
    await this.#end(kill ? 'SIGKILL' : 'SIGTERM')
    const [outcome, { note }] = await recorder.run(
      { f: 'restore', backup: chosen.id, controlPlane },
      async () => {
        const args = ['backup', 'restore', chosen.id, '--control-plane', controlPlane]
        const { code, error, out } = await lethe(env, args)
        return [code === 0 ? 'ok' : 'fail', { note: `${code} ${(error || out).slice(-600)}` }]
      },
    )
    if (outcome === 'ok') {
      recorder.count(`restores (${controlPlane})`)
      if (controlPlane === 'from-backup')
        for (const [i, client] of clients.entries())
          client.exports = client.exports.slice(0, chosen.exports[i])
    } else {
      recorder.violate('restore failed', note ?? '')
    }
    await this.keepUp()
    for (const client of clients) await client.lookAtAll()
    traffic.open()
  }

  // The machine

  async #step(seconds: number): Promise<void> {
    const { clock, recorder } = this.#deps
    recorder.count('clock steps')
    recorder.begin('clock')
    clock.step(seconds)
    await sleep(300)
    recorder.end('clock')
  }

  async #year({ ms, seconds }: Extract<Act, { act: 'year' }>): Promise<void> {
    await this.#step(seconds)
    await sleep(ms)
    await this.#step(-seconds)
  }

  async #fillDisk({ kill, ms }: Extract<Act, { act: 'disk' }>): Promise<void> {
    const { disk, recorder, service, traffic } = this.#deps
    if (disk === null) return
    recorder.count('full disks')
    recorder.begin('disk')
    const bytes = disk.fill()
    recorder.note(`the disk is full: the ballast has ${Math.round(bytes / 2 ** 20)} MB`)
    await sleep(ms)
    if (kill) {
      await this.#end('SIGKILL')
      recorder.count('kills')
      recorder.begin('start')
      service.launch()
      const isReady = await service.ready(8000)
      recorder.note(
        `on the full disk it ${isReady ? 'starts' : service.isRunning ? 'does not get ready' : 'does not start'}`,
      )
      recorder.end('start')
    }
    disk.free()
    recorder.end('disk')
    if (service.isRunning) traffic.isServed = await service.ready(recoveredWithinMs)
    if (traffic.isServed) await this.#awaitRecovery()
    else if (service.isRunning) {
      recorder.violate(
        'does not recover',
        `not ready a minute after the disk had room again: ${service.logTail()}`,
      )
      await this.#end('SIGKILL')
    }
  }

  /** After a full disk every organisation must be able to write again, without a restart. */
  async #awaitRecovery(): Promise<void> {
    const { clients, recorder } = this.#deps
    const acknowledged = () => recorder.counts['rows acknowledged'] ?? 0
    const before = acknowledged()
    const untilMs = performance.now() + recoveredWithinMs
    while (acknowledged() === before && performance.now() < untilMs) await sleep(200)
    if (acknowledged() === before)
      recorder.violate(
        'does not recover',
        `no telemetry of ${clients.length} organisations was accepted for a minute after the disk had room again`,
      )
  }

  // Searching

  async #searchNowAndThen(): Promise<void> {
    const done = this.#deps.clients.flatMap(({ asked }) =>
      asked.filter(({ status }) => status === 'completed'),
    )
    if (done.length < this.#searchedAt + erasuresPerSearch) return
    this.#searchedAt = done.length
    await this.search()
  }

  async search(): Promise<void> {
    const { dataDir, recorder, rows } = this.#deps
    await recorder.run({ f: 'search-files' }, async () => {
      const found = await searchFiles(dataDir, rows)
      recorder.count('searches of files')
      recorder.count('texts found in files', found.size)
      return ['ok', { seen: [...found.keys()], files: [...found.values()] }]
    })
  }

  /** Removes all faults. */
  async heal(): Promise<void> {
    const { disk, service } = this.#deps
    service.signal('SIGCONT')
    disk?.free()
    await this.keepUp()
    await this.#backup
    await this.keepUp()
    if (this.#restoreLater !== null) await this.#restore(this.#restoreLater)
  }
}
