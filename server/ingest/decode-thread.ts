// The code of the decoder's thread: it receives a body, returns its rows without copying them, and keeps
// neither.

import { parentPort } from 'node:worker_threads'
import type { ErrorCode } from '../../contract/errors.ts'
import { AppError } from '../core/app-error.ts'
import { lowerThreadPriority } from '../core/process/thread-priority.ts'
import { type DecodedBody, type DecodeJob, runDecode } from './decode-job.ts'
import { OtlpDecodeError } from './rows/otlp-decode-error.ts'

/** Errors lose their class on the way from thread to thread. */
export type DecodeAnswer =
  | DecodedBody
  | { readonly refusal: { readonly code: ErrorCode; readonly sentence: string } }
  | { readonly malformed: string }
  | { readonly failure: string }

function answerTo(job: DecodeJob): DecodeAnswer {
  try {
    // A Buffer arrives as its base class.
    const { body } = job
    return runDecode({ ...job, body: Buffer.from(body.buffer, body.byteOffset, body.length) })
  } catch (error) {
    if (error instanceof AppError) return { refusal: { code: error.code, sentence: error.message } }
    if (error instanceof OtlpDecodeError) return { malformed: error.message }
    return { failure: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}

lowerThreadPriority('computing')
parentPort?.on('message', (job: DecodeJob) => {
  const answer = answerTo(job)
  const rows = 'parts' in answer ? answer.parts.flatMap(({ batch }) => batch) : []
  const memory = new Set(rows.flatMap(({ bytes, marks }) => [bytes.buffer, marks.buffer]))
  parentPort?.postMessage(
    answer,
    [...memory].filter((buffer) => buffer instanceof ArrayBuffer),
  )
})
