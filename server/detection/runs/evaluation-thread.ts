// What runs in a thread of the evaluation pool: it takes a task, judges it, answers, and keeps nothing of either. It has
// no store, no engine, no clock and no settings; what it may know comes with the task.

import { parentPort } from 'node:worker_threads'
import type { Evaluation } from '../alarms/alarm.ts'
import { type EvaluationTask, judge } from './evaluate.ts'

/** The sentence of what was thrown; an error of its own class is no use in another thread. */
export type ThreadAnswer = { readonly evaluations: readonly Evaluation[] } | { readonly error: string }

parentPort?.on('message', (task: EvaluationTask) => {
  try {
    const evaluations = judge(task)
    parentPort?.postMessage({ evaluations } satisfies ThreadAnswer, buffersOf(evaluations))
  } catch (error) {
    const sentence = error instanceof Error ? (error.stack ?? error.message) : String(error)
    parentPort?.postMessage({ error: sentence } satisfies ThreadAnswer)
  }
})

/** Handed over instead of copied: nothing here needs them any more. Each once. */
function buffersOf(evaluations: readonly Evaluation[]): ArrayBuffer[] {
  const columns = evaluations.flatMap(({ scores }) => Object.values<Float64Array>({ ...scores }))
  return [...new Set(columns.map(({ buffer }) => buffer))].filter((buffer) => buffer instanceof ArrayBuffer)
}
