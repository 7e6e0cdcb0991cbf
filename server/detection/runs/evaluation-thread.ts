// The program of a thread of the evaluation pool: evaluates tasks in the order in which they come, and keeps
// the courses of series between them, until a message drops them. It has no engine, no clock and no settings;
// everything it needs is in the messages.

import { parentPort } from 'node:worker_threads'
import { lowerThreadPriority } from '../../core/process/thread-priority.ts'
import { type EvaluationResult, EvaluationStore, type EvaluationTask } from './evaluation-store.ts'
import type { JudgedWindow } from './series-course.ts'

export type ThreadRequest =
  | { readonly task: EvaluationTask }
  | { readonly forget: string }
  | { readonly end: string }

/**
 * `error` is the text of what was thrown, because error classes do not survive the transfer between threads.
 */
export type ThreadResult = { readonly result: EvaluationResult } | { readonly error: string }

const store = new EvaluationStore()

// Commits, charts and erasures come first.
lowerThreadPriority('deferred')
parentPort?.on('message', (request: ThreadRequest) => {
  if ('forget' in request) return store.forget(request.forget)
  if ('end' in request) return store.end(request.end)
  try {
    const { buffers, result } = detached(store.evaluate(request.task))
    parentPort?.postMessage({ result } satisfies ThreadResult, buffers)
  } catch (error) {
    const sentence = error instanceof Error ? (error.stack ?? error.message) : String(error)
    parentPort?.postMessage({ error: sentence } satisfies ThreadResult)
  }
})

/**
 * The same with all columns in one buffer of their own, to be transferred instead of copied. Sending the
 * views would send the whole memory behind them, and each buffer that is sent has its own cost.
 */
function detached(result: EvaluationResult): { result: EvaluationResult; buffers: ArrayBuffer[] } {
  if (result === null) return { result, buffers: [] }
  const lengths = result.flatMap((window) => numbersOf(window).map(({ length }) => length))
  const bytesOfNumbers = lengths.reduce((sum, length) => sum + length, 0) * Float64Array.BYTES_PER_ELEMENT
  const flags = result.reduce((sum, { series }) => sum + series.unknown.length, 0)
  const buffer = new ArrayBuffer(bytesOfNumbers + flags)
  let [at, flagsAt] = [0, bytesOfNumbers]
  const moved = (column: Float64Array) => {
    const own = new Float64Array(buffer, at, column.length)
    own.set(column)
    at += own.byteLength
    return own
  }
  const movedFlags = (column: Uint8Array) => {
    const own = new Uint8Array(buffer, flagsAt, column.length)
    own.set(column)
    flagsAt += own.byteLength
    return own
  }
  const windows = result.map(({ evaluation, series }): JudgedWindow => {
    const { unknown, values, volumes } = series
    const columns = Object.entries(evaluation.scores).map(([name, column]) => [name, moved(column)])
    return {
      series: {
        ...series,
        values: moved(values),
        unknown: movedFlags(unknown),
        volumes: volumes === null ? null : moved(volumes),
      },
      evaluation: { ...evaluation, scores: Object.fromEntries(columns) },
    }
  })
  return { result: windows, buffers: [buffer] }
}

function numbersOf({ evaluation, series }: JudgedWindow): Float64Array[] {
  const scores = Object.values<Float64Array>({ ...evaluation.scores })
  return [...scores, series.values, ...(series.volumes === null ? [] : [series.volumes])]
}
