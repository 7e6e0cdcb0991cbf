// Follows a deletion until it has ended. A terminal shows one picture that is redrawn; a file or a pipe gets
// a line for each change. A service that restarts meanwhile is waited for.

import type { DeletionRequest } from '../../../contract/deletion/requests.ts'
import { deletionOperations } from '../../../contract/operations/deletions.ts'
import type { Clock } from '../../core/clock.ts'
import { CommandFailure, exitCodes } from '../failure.ts'
import { harmless, type JsonOption, print, printJsonLine, say } from '../print.ts'
import { type ApiClient, type ApiResponse, isTemporary, ServiceRefusal } from './api.ts'
import { changeKey, deletionLine, deletionLines, hasEnded } from './deletion-view.ts'

const pollMs = 500
/** Longer than a service needs to restart. */
const waitMs = 60_000

interface Follower extends JsonOption {
  readonly api: ApiClient
  readonly clock: Clock
}

/**
 * Returns the deletion when it has ended, whatever its status. A service that has responded once is waited
 * for while it is away; `hasAnswered` says that it responded to an earlier request.
 */
export async function followDeletion(
  follower: Follower,
  requestId: string,
  onAnswer: (answer: ApiResponse<DeletionRequest>) => void,
  hasAnswered = false,
): Promise<ApiResponse<DeletionRequest>> {
  const { api, clock } = follower
  let shown = ''
  let awaySinceMs: number | null = null
  for (;;) {
    let pauseMs = pollMs
    try {
      const answer = await api.call(deletionOperations.get, { params: { request_id: requestId } })
      awaySinceMs = null
      const key = changeKey(answer.value)
      if (key !== shown) onAnswer(answer)
      shown = key
      if (hasEnded(answer.value)) return answer
    } catch (error) {
      const isKnown = hasAnswered || shown !== ''
      if (!isKnown || !isTemporary(error)) throw error
      if (awaySinceMs === null) say('The service does not respond; waiting for it.')
      awaySinceMs ??= clock.nowMs()
      if (clock.nowMs() - awaySinceMs >= waitMs) throw error
      if (error instanceof ServiceRefusal) pauseMs = Math.max(pollMs, error.retryAfterSeconds * 1000)
    }
    await clock.sleep(pauseMs)
  }
}

/** As {@link followDeletion}, with output in the form that fits standard output. */
export function watchOnOutput(
  follower: Follower,
  requestId: string,
  hasAnswered = false,
): Promise<ApiResponse<DeletionRequest>> {
  return followDeletion(follower, requestId, teller(follower), hasAnswered)
}

function teller({ json }: JsonOption): (answer: ApiResponse<DeletionRequest>) => void {
  if (json) return (answer) => printJsonLine(answer.json)
  if (process.stdout.isTTY !== true) return ({ value }) => print(deletionLine(value))
  let drawn = 0
  return ({ value }) => {
    const width = process.stdout.columns || 80
    // A line that the terminal would break would count as one when the cursor moves up.
    const lines = deletionLines(value).map((line) => harmless(line).slice(0, width - 1))
    const up = drawn === 0 ? '' : `\u001b[${drawn}A\u001b[J`
    process.stdout.write(`${up}${lines.join('\n')}\n`)
    drawn = lines.length
  }
}

/** Only a completed deletion is a success; a script must not mistake a failed one for it. */
export function requireCompleted({ value }: ApiResponse<DeletionRequest>): void {
  if (value.status === 'completed') return
  throw new CommandFailure(
    `The deletion ${value.request_id} ended as ${value.status}.`,
    exitCodes.notCompleted,
  )
}
