// The service of any checkout as its user starts it, `lethe serve` in its own process, on loopback ports that
// the system chooses. A process that dies is started again on the same ports and the same folder, as a
// supervisor would do, and its deaths are counted.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { memoryMb, usedBy } from '../process-use.ts'

interface Started {
  readonly address: string
  readonly grpc_address: string | null
}

/** Interval of reading memory. A peak between two readings is in the kernel's own maximum. */
const sampleMs = 200
const restartMs = 500
/** Long enough for a busy machine. */
const startLimitMs = 120_000

/** Arguments of Node for a program of the checkout. */
function launch(tree: string, program: string): string[] {
  const flags = JSON.parse(readFileSync(join(tree, 'scripts', 'node-flags.json'), 'utf8')) as string[]
  return [...flags, join(tree, program)]
}

export class Service {
  readonly #tree: string
  readonly #env: NodeJS.ProcessEnv
  #child: ChildProcess | null = null
  #isStopping = false
  #peakMb = 0
  #cpuOfDead = 0
  #lastCpu = 0
  #restarted: Promise<void> | null = null
  #sampler: NodeJS.Timeout | null = null
  /** The end of its output on standard error. */
  #lastWords = ''
  #address = { host: '127.0.0.1', port: 0, grpcPort: 0 }
  deaths = 0

  private constructor(tree: string, dataDir: string, env: NodeJS.ProcessEnv) {
    this.#tree = tree
    this.#env = { ...process.env, LETHE_LOG_LEVEL: 'error', ...env, LETHE_DATA_DIR: dataDir }
  }

  /** Starts it and waits until it is ready. Throws where it does not start. */
  static async start(tree: string, dataDir: string, env: NodeJS.ProcessEnv = {}): Promise<Service> {
    const service = new Service(tree, dataDir, env)
    service.#sampler = setInterval(() => service.#sample(), sampleMs)
    try {
      await service.#launch()
    } catch (error) {
      await service.kill()
      throw error
    }
    return service
  }

  get host(): string {
    return this.#address.host
  }
  get port(): number {
    return this.#address.port
  }
  get grpcPort(): number {
    return this.#address.grpcPort
  }
  get url(): string {
    return `http://${this.host}:${this.port}`
  }
  get lastWords(): string {
    return this.#lastWords
  }

  /** The maximum memory of any of its processes, in megabytes of 1,000,000 bytes. */
  get peakMb(): number {
    this.#sample()
    return this.#peakMb
  }

  /** CPU of all its processes so far. */
  get cpuSeconds(): number {
    this.#sample()
    return this.#cpuOfDead + this.#lastCpu
  }

  async #launch(): Promise<void> {
    const { port, grpcPort } = this.#address
    const child = spawn(process.execPath, [...launch(this.#tree, 'server/cli/lethe.ts'), 'serve', '--json'], {
      cwd: this.#tree,
      env: { ...this.#env, LETHE_PORT: String(port), LETHE_GRPC_PORT: String(grpcPort) },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    const kill = () => child.kill('SIGKILL')
    process.once('exit', kill)
    child.once('exit', () => process.off('exit', kill))
    child.stderr?.on('data', (text: Buffer) => {
      this.#lastWords = `${this.#lastWords}${text}`.slice(-2000)
    })
    const started = new Promise<Started>((resolve, reject) => {
      createInterface({ input: child.stdout as NonNullable<typeof child.stdout> }).on('line', (line) => {
        if (line.startsWith('{"address"')) resolve(JSON.parse(line) as Started)
      })
      child.once('exit', () => reject(new Error(`The service did not start: ${this.#lastWords}`)))
    })
    child.once('exit', () => void this.#onEnd())
    const late = sleep(startLimitMs, null, { ref: false })
    const said = await Promise.race([started, late])
    if (said === null) throw new Error('The service did not start in time.')
    const grpcAddress = said.grpc_address?.split(':').at(-1)
    this.#address = {
      host: '127.0.0.1',
      port: Number(new URL(said.address).port),
      grpcPort: Number(grpcAddress),
    }
  }

  async #onEnd(): Promise<void> {
    this.#child = null
    this.#cpuOfDead += this.#lastCpu
    this.#lastCpu = 0
    if (this.#isStopping || this.port === 0) return
    this.deaths++
    await sleep(restartMs)
    // If it does not start either, its exit calls this function again.
    if (this.#isStopping) return
    this.#restarted = this.#launch().catch(() => undefined)
  }

  #sample(): void {
    const pid = this.#child?.pid
    if (pid === undefined) return
    try {
      this.#peakMb = Math.max(this.#peakMb, memoryMb(pid, 'VmHWM'))
      this.#lastCpu = usedBy(pid).cpuSeconds
    } catch {
      // It has just ended.
    }
  }

  /** Ends it with the signal that its user would send, so that its folder is complete. */
  stop(): Promise<void> {
    return this.#end('SIGTERM')
  }

  /** Kills it; its folder is not needed any more. */
  kill(): Promise<void> {
    return this.#end('SIGKILL')
  }

  /** Kills it as an attack would. Resolves when it runs again. */
  async die(): Promise<void> {
    this.#child?.kill('SIGKILL')
    while (this.#restarted === null) await sleep(10)
    await this.#restarted
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    this.#isStopping = true
    if (this.#sampler !== null) clearInterval(this.#sampler)
    const child = this.#child
    if (child === null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }
}

/** Runs a command of the checkout's command line on a data folder and parses the JSON that it prints. */
export function lethe<T>(tree: string, dataDir: string, args: readonly string[]): T {
  const out = execFileSync(process.execPath, [...launch(tree, 'server/cli/lethe.ts'), ...args, '--json'], {
    cwd: tree,
    env: { ...process.env, LETHE_DATA_DIR: dataDir },
    encoding: 'utf8',
  })
  return JSON.parse(out) as T
}
