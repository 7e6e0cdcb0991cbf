// The service of any checkout as its user starts it, `lethe serve` in its own process, on loopback ports that
// the system chooses. A process that dies is not started again: what follows in its trial is refused.

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
/** Long enough for a busy machine. */
const startLimitMs = 120_000

/** Arguments of Node for a program of the checkout. */
function launch(tree: string, program: string): string[] {
  const flags = JSON.parse(readFileSync(join(tree, 'scripts', 'node-flags.json'), 'utf8')) as string[]
  return [...flags, join(tree, program)]
}

export class Service {
  readonly host = '127.0.0.1'
  readonly port: number
  readonly grpcPort: number
  readonly #child: ChildProcess
  readonly #lastWords: () => string
  readonly #sampler: NodeJS.Timeout
  #peakMb = 0
  #cpuSeconds = 0
  #isStopping = false
  /** Whether its process has ended without being asked to. */
  hasDied = false

  private constructor(child: ChildProcess, { address, grpc_address }: Started, lastWords: () => string) {
    this.port = Number(new URL(address).port)
    this.grpcPort = Number(grpc_address?.split(':').at(-1))
    this.#child = child
    this.#lastWords = lastWords
    this.#sampler = setInterval(() => this.#sample(), sampleMs)
    child.once('exit', () => {
      this.hasDied = !this.#isStopping
      clearInterval(this.#sampler)
    })
  }

  /** Starts it and waits until it is ready. Throws where it does not start. */
  static async start(tree: string, dataDir: string, env: NodeJS.ProcessEnv = {}): Promise<Service> {
    const own = { LETHE_DATA_DIR: dataDir, LETHE_PORT: '0', LETHE_GRPC_PORT: '0' }
    const child = spawn(process.execPath, [...launch(tree, 'server/cli/lethe.ts'), 'serve', '--json'], {
      cwd: tree,
      env: { ...process.env, LETHE_LOG_LEVEL: 'error', ...env, ...own },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const kill = () => child.kill('SIGKILL')
    process.once('exit', kill)
    child.once('exit', () => process.off('exit', kill))
    let lastWords = ''
    child.stderr.on('data', (text: Buffer) => {
      lastWords = `${lastWords}${text}`.slice(-2000)
    })
    const started = new Promise<Started>((resolve, reject) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        if (line.startsWith('{"address"')) resolve(JSON.parse(line) as Started)
      })
      child.once('exit', () => reject(new Error(`The service did not start: ${lastWords}`)))
    })
    const said = await Promise.race([started, sleep(startLimitMs, null, { ref: false })])
    if (said !== null) return new Service(child, said, () => lastWords)
    kill()
    throw new Error('The service did not start in time.')
  }

  get url(): string {
    return `http://${this.host}:${this.port}`
  }

  /** The end of its output on standard error. */
  get lastWords(): string {
    return this.#lastWords()
  }

  /** Its maximum memory, in megabytes of 1,000,000 bytes. */
  get peakMb(): number {
    this.#sample()
    return this.#peakMb
  }

  get cpuSeconds(): number {
    this.#sample()
    return this.#cpuSeconds
  }

  #sample(): void {
    const { pid } = this.#child
    if (pid === undefined || this.hasDied) return
    try {
      this.#peakMb = Math.max(this.#peakMb, memoryMb(pid, 'VmHWM'))
      this.#cpuSeconds = usedBy(pid).cpuSeconds
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

  /** Kills it as an attack would, and waits until it has ended. */
  async die(): Promise<void> {
    this.#child.kill('SIGKILL')
    await once(this.#child, 'exit')
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    this.#isStopping = true
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.kill(signal)
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
