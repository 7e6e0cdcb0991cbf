// The program of a thread of the evaluation pool: evaluates each task, sends the results back, and keeps
// nothing. It has no store, no engine, no clock and no settings; everything it needs is in the task.

import { parentPort } from 'node:worker_threads'
import { lowerThreadPriority } from '../../core/thread-priority.ts'
import type { Evaluation } from '../alarms/alarm.ts'
import { type EvaluationTask, evaluateTask } from './evaluate.ts'

/**
 * `error` is the text of what was thrown, because error classes do not survive the transfer between threads.
 */
export type ThreadResult = { readonly evaluations: readonly Evaluation[] } | { readonly error: string }

lowerThreadPriority()
parentPort?.on('message', (task: EvaluationTask) => {
  try {
    const evaluations = evaluateTask(task)
    parentPort?.postMessage({ evaluations } satisfies ThreadResult, buffersOf(evaluations))
  } catch (error) {
    const sentence = error instanceof Error ? (error.stack ?? error.message) : String(error)
    parentPort?.postMessage({ error: sentence } satisfies ThreadResult)
  }
})

/** The buffers to transfer instead of copying, each once. The thread does not need them any more. */
function buffersOf(evaluations: readonly Evaluation[]): ArrayBuffer[] {
  const columns = evaluations.flatMap(({ scores }) => Object.values<Float64Array>({ ...scores }))
  return [...new Set(columns.map(({ buffer }) => buffer))].filter((buffer) => buffer instanceof ArrayBuffer)
}
