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
    // Sending a view would send the whole memory behind it.
    const result = store.evaluate(request.task)?.map(detached) ?? null
    parentPort?.postMessage({ result } satisfies ThreadResult, buffersOf(result ?? []))
  } catch (error) {
    const sentence = error instanceof Error ? (error.stack ?? error.message) : String(error)
    parentPort?.postMessage({ error: sentence } satisfies ThreadResult)
  }
})

/** The same with columns of its own. */
function detached({ evaluation, series }: JudgedWindow): JudgedWindow {
  const columns = Object.entries(evaluation.scores).map(([name, column]) => [name, column.slice()])
  return {
    series: {
      ...series,
      values: series.values.slice(),
      unknown: series.unknown.slice(),
      volumes: series.volumes?.slice() ?? null,
    },
    evaluation: { ...evaluation, scores: Object.fromEntries(columns) },
  }
}

/** The buffers to transfer instead of copying, each once. The thread does not need them any more. */
function buffersOf(windows: readonly JudgedWindow[]): ArrayBuffer[] {
  const columns = windows.flatMap(({ evaluation, series }) => [
    ...Object.values<Float64Array>({ ...evaluation.scores }),
    series.values,
    series.unknown,
    ...(series.volumes === null ? [] : [series.volumes]),
  ])
  return [...new Set(columns.map(({ buffer }) => buffer))].filter((buffer) => buffer instanceof ArrayBuffer)
}
