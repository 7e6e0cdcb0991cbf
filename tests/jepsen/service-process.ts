// The service as its user starts it, in its own process, and the commands of its command line. The launcher
// of the repository starts the service as its child; signals go to the child, which is the process with the
// data.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const launcher = [join(root, 'scripts', 'run.mjs'), 'server/cli/lethe.ts']

interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** Whether it was ever ready. */
  readonly wasReady: boolean
}

interface ServiceOptions {
  readonly address: string
  readonly env: Readonly<Record<string, string>>
  /**
   * File of the service's standard output and standard error; on the disk that is filled, as in production.
   */
  readonly logPath: string
  /** Called when the process has ended without a request to stop. */
  readonly onEnd: (how: Ended) => void
}

export class ServiceProcess {
  readonly #options: ServiceOptions
  #child: ChildProcess | null = null
  #ended: Promise<unknown> = Promise.resolve()
  #isAwaited = true
  #wasReady = false

  constructor(options: ServiceOptions) {
    this.#options = options
  }

  get isRunning(): boolean {
    return this.#child !== null
  }

  /** Launches it; {@link ready} waits until it is ready. */
  launch(): void {
    if (this.#child !== null) throw new Error('The service is running.')
    const log = openSync(this.#options.logPath, 'a')
    const child = spawn(process.execPath, [...launcher, 'serve'], {
      cwd: root,
      // A kill by the run must end it, and not be repaired by the watchdog.
      env: { ...process.env, LETHE_WATCHDOG_SECONDS: 'off', ...this.#options.env },
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    this.#child = child
    this.#isAwaited = false
    this.#wasReady = false
    this.#ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#child = null
        if (!this.#isAwaited) this.#options.onEnd({ code, signal, wasReady: this.#wasReady })
        resolve(null)
      })
    })
  }

  /** Whether it became ready within the time; false also where it ended. */
  async ready(limitMs: number): Promise<boolean> {
    const untilMs = performance.now() + limitMs
    while (performance.now() < untilMs) {
      if (this.#child === null) return false
      if (await this.#isReady()) {
        this.#wasReady = true
        return true
      }
      await sleep(100)
    }
    return false
  }

  async #isReady(): Promise<boolean> {
    try {
      const answer = await fetch(`${this.#options.address}/readyz`, { signal: AbortSignal.timeout(2000) })
      await answer.text()
      return answer.status === 200
    } catch {
      return false
    }
  }

  /** Sends a signal to the serving process. */
  signal(signal: NodeJS.Signals): void {
    const pid = this.#servingPid()
    if (pid === null) return
    try {
      process.kill(pid, signal)
    } catch {
      // It has just ended.
    }
  }

  /** Ends it and waits; false where it did not end within the time and was killed. */
  async end(signal: 'SIGKILL' | 'SIGTERM', limitMs = 180_000): Promise<boolean> {
    if (this.#child === null) return true
    this.#isAwaited = true
    this.signal(signal)
    const isInTime = await Promise.race([this.#ended.then(() => true), sleep(limitMs, false, { ref: false })])
    if (!isInTime) {
      this.signal('SIGKILL')
      this.#child?.kill('SIGKILL')
      await this.#ended
    }
    return isInTime
  }

  /** The last lines of its log, limited to a readable length. */
  logTail(): string {
    try {
      const lines = readFileSync(this.#options.logPath, 'utf8').trimEnd().split('\n')
      return lines
        .slice(-3)
        .map((line) => line.slice(0, 200))
        .join(' | ')
    } catch {
      return ''
    }
  }

  #servingPid(): number | null {
    const pid = this.#child?.pid
    if (pid === undefined) return null
    try {
      const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
      return child ? Number(child) : pid
    } catch {
      return pid
    }
  }
}

interface CommandResult {
  readonly code: number
  readonly out: string
  readonly error: string
}

/** Runs a command of the command line until it ends. */
export function lethe(
  env: Readonly<Record<string, string>>,
  args: readonly string[],
  limitMs = 400_000,
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const options = { cwd: root, env: { ...process.env, ...env }, timeout: limitMs, maxBuffer: 64 << 20 }
    execFile(process.execPath, [...launcher, ...args], options, (error, out, err) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1
      resolve({ code, out, error: err })
    })
  })
}
