// Uncompresses and decodes bodies in turns between organisations: small ones on the event loop, where a
// turn ends after some milliseconds, and large ones one at a time in a separate thread. A body of 16 MB
// takes a third of a second or more, during which the event loop could answer nobody, and an HTTP request
// has a dozen steps that each wait for the loop. A compressed body that claims to be small and is not, and
// a small one whose rows are large, go to the thread as soon as that is known; for a while so do the next
// ones of its organisation. The thread is started when it is first needed and keeps no data. If it ends
// without a result, for example because memory ran out, or takes too long, only its current body is refused;
// the next body starts another thread.

import { Worker } from 'node:worker_threads'
import { AppError } from '../core/app-error.ts'
import { type Clock, systemClock } from '../core/clock.ts'
import type { LoopTurns } from '../core/turns/loop-turns.ts'
import type { ThreadTurns } from '../core/turns/thread-turns.ts'
import { type DecodedBody, type DecodeJob, runDecodeWithin } from './decode-job.ts'
import type { DecodeAnswer } from './decode-thread.ts'
import { OtlpDecodeError } from './rows/otlp-decode-error.ts'

/**
 * From this size on bodies are decoded in the thread, bytes of protobuf: some 25 ms of work. Exporters send
 * less; for smaller bodies a thread costs more than it saves: bodies of 1.1 MB take a quarter more CPU per
 * row in it.
 */
const largeBytes = 2 * 1024 * 1024

/**
 * A body whose rows take more goes to the thread, bytes: writing them is some 60 ms of work. Rows repeat
 * their resource, so those of a body of 100 kB can take 128 MB and two seconds; usual ones take about three
 * times the size of their body.
 */
const manyRowBytes = 8 * 1024 * 1024

/**
 * For how long the next bodies of an organisation are expected to be like one that went to the thread late,
 * milliseconds. Each that is tried on the event loop before occupies it for those 60 ms.
 */
const expectedMs = 10_000

/** Decoding a byte of JSON takes about as long as this many bytes of protobuf. */
const jsonFactor = 2

/** Decoding 16 MB of JSON takes 150 MB, and settings allow bodies of 256 MB. */
const threadMemoryMb = 1024

/**
 * Longest time for a body, milliseconds: 256 MB of JSON take a fifth of it on an idle core. A body for which
 * the decoder does not end would otherwise keep all later ones waiting.
 */
const threadLimitMs = 60_000

/** A body that waits for its turn. */
export interface Undecoded {
  /** What the body claims to have uncompressed, bytes. */
  readonly bodyBytes: number
  readonly isJson?: boolean
  /**
   * Called at the body's turn, and again where it turns out to be large. Its errors are thrown to the caller
   * of {@link Decoder.decode}.
   */
  readonly job: () => DecodeJob
  /** Called as soon as the bytes are no longer needed. */
  readonly release: () => void
}

interface DecoderOptions {
  /** Of small bodies, on the event loop. */
  readonly loop: LoopTurns
  /** Of large bodies, in the thread. */
  readonly thread: ThreadTurns
  /** A clock that never goes back, milliseconds. */
  readonly nowMs: () => number
  /** Measures the time limit of a body. Default: the system clock, whatever clock the service uses. */
  readonly clock?: Pick<Clock, 'sleep'>
  /** The program of the thread. */
  readonly entry?: URL
}

/** A body that claimed to be small and was not, or whose rows were large. */
interface LateLarge {
  readonly bodyBytes: number
  readonly atMs: number
}

export class Decoder {
  readonly #options: DecoderOptions
  /** The latest of each organisation. */
  readonly #lateLarge = new Map<string, LateLarge>()
  /**
   * The body that the thread reads; it has one at a time. New memory for each large body would take the event
   * loop several times as long as the copy.
   */
  #memory = new SharedArrayBuffer(0)
  #worker: Worker | null = null
  #closed = false

  constructor(options: DecoderOptions) {
    this.#options = options
  }

  /** Returns the rows of the body. Throws the errors of the decoders. */
  async decode(tenantId: string, body: Undecoded): Promise<DecodedBody> {
    const factor = body.isJson ? jsonFactor : 1
    const isLarge = body.bodyBytes * factor >= largeBytes
    if (isLarge || this.#expectsLarge(tenantId, body)) return this.#decodeLarge(tenantId, body)
    await this.#options.loop.turnOf(tenantId)
    // Another one may have been decoded while this one waited.
    if (this.#expectsLarge(tenantId, body)) return this.#decodeLarge(tenantId, body)
    const decoded = runDecodeWithin(body.job(), { bodyBytes: largeBytes / factor, rowBytes: manyRowBytes })
    if (decoded === null) {
      this.#lateLarge.set(tenantId, { bodyBytes: body.bodyBytes, atMs: this.#options.nowMs() })
      return this.#decodeLarge(tenantId, body)
    }
    body.release()
    return decoded
  }

  /** Ends the thread; decoding that runs in it fails. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#worker?.terminate()
  }

  /** Whether a body that was hardly larger turned out to be large lately. */
  #expectsLarge(tenantId: string, { bodyBytes }: Undecoded): boolean {
    const latest = this.#lateLarge.get(tenantId)
    if (latest === undefined) return false
    if (this.#options.nowMs() - latest.atMs < expectedMs) return bodyBytes * 2 >= latest.bodyBytes
    this.#lateLarge.delete(tenantId)
    return false
  }

  #decodeLarge(tenantId: string, body: Undecoded): Promise<DecodedBody> {
    return this.#options.thread.run(tenantId, async () => {
      const job = body.job()
      const copy = this.#copyForThread(job.body)
      body.release()
      try {
        return decodedIn(await this.#ask({ ...job, body: copy }))
      } finally {
        copy.fill(0)
      }
    })
  }

  #copyForThread(body: Buffer): Buffer {
    if (this.#memory.byteLength < body.length)
      this.#memory = new SharedArrayBuffer(2 ** Math.ceil(Math.log2(body.length)))
    const copy = Buffer.from(this.#memory, 0, body.length)
    body.copy(copy)
    return copy
  }

  #ask(job: DecodeJob): Promise<DecodeAnswer> {
    if (this.#closed) throw new AppError('not_ready', { retryAfterSeconds: 1 })
    const worker = this.#worker ?? this.#start()
    const answered = new AbortController()
    return new Promise<DecodeAnswer>((resolve, reject) => {
      const fail = (cause?: unknown) => reject(this.#endedBy(cause))
      worker.once('message', resolve).once('error', fail).once('exit', fail)
      answered.signal.addEventListener('abort', () =>
        worker.off('message', resolve).off('error', fail).off('exit', fail),
      )
      void this.#stopLate(worker, answered.signal, reject)
      worker.ref()
      worker.postMessage(job)
    }).finally(() => {
      answered.abort()
      // An idle thread must not keep the process running.
      worker.unref()
    })
  }

  /**
   * Stops the thread where the body takes too long, and fails the body. Its memory is not used again: the
   * thread may still be reading it.
   */
  async #stopLate(worker: Worker, answered: AbortSignal, fail: (error: AppError) => void): Promise<void> {
    const { clock = systemClock } = this.#options
    await clock.sleep(threadLimitMs, answered)
    if (answered.aborted) return
    if (this.#worker === worker) this.#worker = null
    this.#memory = new SharedArrayBuffer(0)
    worker.terminate().catch(() => undefined)
    const sentence = 'Reading the body takes longer than allowed; send smaller bodies.'
    fail(new AppError('body_too_large', { sentence }))
  }

  /** Returns the error for the body with which the thread ended. */
  #endedBy(cause: unknown): AppError {
    if (this.#closed) return new AppError('not_ready', { retryAfterSeconds: 1 })
    return new AppError('body_too_large', {
      sentence: 'Reading the body takes more memory than allowed; send smaller bodies.',
      cause,
    })
  }

  #start(): Worker {
    const entry = this.#options.entry ?? new URL('./decode-thread.ts', import.meta.url)
    const worker = new Worker(entry, { resourceLimits: { maxOldGenerationSizeMb: threadMemoryMb } })
    this.#worker = worker
    // The job that waits receives the error; without a listener it would end the process.
    worker.on('error', () => {})
    worker.once('exit', () => {
      if (this.#worker === worker) this.#worker = null
    })
    return worker
  }
}

function decodedIn(answer: DecodeAnswer): DecodedBody {
  if ('refusal' in answer) throw new AppError(answer.refusal.code, { sentence: answer.refusal.sentence })
  if ('malformed' in answer) throw new OtlpDecodeError(answer.malformed)
  if ('failure' in answer) throw new Error('A body could not be decoded', { cause: answer.failure })
  const parts = answer.parts.map((part) => ({
    ...part,
    batch: part.batch.map((rows) => {
      const { buffer, byteOffset, length } = rows.bytes
      return { ...rows, bytes: Buffer.from(buffer, byteOffset, length) }
    }),
  }))
  return { ...answer, parts }
}
