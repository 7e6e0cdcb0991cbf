// `lethe erase`: asks the service to erase telemetry of the token's own organisation, after showing what
// would be erased. A person types the tenant_id; a script passes it with --confirm. The HTTP request names
// the preview that was shown, so that the service refuses it if more than a few rows have changed since.

import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline/promises'
import {
  type DeletionPreview,
  type DeletionRequest,
  delayMinutesMax,
  StalePreview,
} from '../../../contract/deletion/requests.ts'
import { deletionOperations } from '../../../contract/operations/deletions.ts'
import { tenancyOperations } from '../../../contract/operations/tenancy.ts'
import type { Clock } from '../../core/clock.ts'
import { CommandFailure, exitCodes } from '../failure.ts'
import { harmless, type JsonOption, print, printJson, say } from '../print.ts'
import { ApiClient, type ApiResponse, ServiceRefusal } from './api.ts'
import { deletionLines, previewLines } from './deletion-view.ts'
import { followDeletion, requireCompleted, watchOnOutput } from './follow.ts'
import type { Connection } from './settings.ts'
import { countText, parseDuration } from './text.ts'

interface EraseOptions extends JsonOption {
  readonly from?: string
  readonly until?: string
  readonly signals?: string
  readonly reason?: string
  readonly note?: string
  readonly delay?: string
  readonly refuseLate?: boolean
  readonly confirm?: string
  readonly preview?: string
  readonly dryRun?: boolean
  readonly wait?: boolean
}

/** The option for each location of a problem. */
const optionNames = {
  'body.range_start': '--from',
  'body.range_end': '--until',
  'body.signals': '--signals',
  'body.reason': '--reason',
  'body.note': '--note',
  'body.delay_minutes': '--delay',
  'body.confirm': '--confirm',
  'body.preview_id': '--preview',
}

export async function erase(
  connection: Connection,
  scope: 'range' | 'all',
  options: EraseOptions,
  clock: Clock,
): Promise<void> {
  const api = new ApiClient(connection, optionNames)
  const selection = {
    scope,
    ...(options.from !== undefined && { range_start: options.from }),
    ...(options.until !== undefined && { range_end: options.until }),
    ...(options.signals !== undefined && { signals: options.signals.split(',').map((one) => one.trim()) }),
  }
  const more = detailsOf(options)
  if (options.preview !== undefined && options.confirm === undefined) {
    throw new CommandFailure(
      '--preview needs --confirm. Without --confirm, a new preview is shown and you are asked to confirm it.',
    )
  }
  const { tenant_id: tenantId } = (await api.call(tenancyOperations.me)).value
  const body = { ...selection, ...more }
  const follower = { api, clock, ...(options.json && { json: true }) }
  if (options.preview !== undefined && !options.dryRun) {
    const confirmed = { ...body, confirm: options.confirm, preview_id: options.preview }
    return report(follower, await postPreviewed(api, confirmed, tenantId), options)
  }
  const preview = await api.call(deletionOperations.preview, { json: selection })
  if (options.dryRun) return showPreview(preview, tenantId, options)
  tellPreview(preview.value, tenantId)
  const answer =
    options.confirm === undefined
      ? await askAndErase(api, body, preview.value, tenantId)
      : await postPreviewed(
          api,
          { ...body, confirm: options.confirm, preview_id: preview.value.id },
          tenantId,
        )
  await report(follower, answer, options)
}

function detailsOf({ delay, note, reason, refuseLate }: EraseOptions) {
  return {
    ...(reason !== undefined && { reason }),
    ...(note !== undefined && { note }),
    ...(delay !== undefined && { delay_minutes: delayMinutes(delay) }),
    ...(refuseLate && { refuse_late: true }),
  }
}

function delayMinutes(text: string): number {
  const minutes = (parseDuration(text) ?? Number.NaN) / 60_000
  if (Number.isInteger(minutes) && minutes <= delayMinutesMax) return minutes
  throw new CommandFailure(`--delay must be whole minutes, hours or days up to 30d, such as 90m, 24h or 7d.`)
}

function showPreview(preview: ApiResponse<DeletionPreview>, tenantId: string, { json }: JsonOption): void {
  if (json) {
    printJson(preview.json)
    return
  }
  for (const line of previewLines(preview.value, tenantId)) print(line)
  print(`Nothing is erased. ${confirmText(preview.value, tenantId)}`)
}

function confirmText({ id, tolerance_rows }: DeletionPreview, tenantId: string): string {
  return `To erase this, plus or minus ${countText(tolerance_rows)} rows: --confirm ${tenantId} --preview ${id}`
}

/** If the preview is stale, the service refuses it; then the new preview is shown, with how to confirm it. */
async function postPreviewed(
  api: ApiClient,
  body: Readonly<Record<string, unknown>>,
  tenantId: string,
): Promise<ApiResponse<DeletionRequest>> {
  try {
    return await post(api, body)
  } catch (error) {
    const now = staleOf(error)
    if (now === null) throw error
    tellPreview(now, tenantId)
    throw new CommandFailure(
      `The preview has expired, or the telemetry has changed; nothing is erased. ${confirmText(now, tenantId)}`,
    )
  }
}

/** Returns the new preview from the refusal of a stale one; null for any other error. */
function staleOf(error: unknown): DeletionPreview | null {
  const stale = error instanceof ServiceRefusal ? StalePreview.safeParse(error.body) : null
  return stale?.success === true ? stale.data.preview : null
}

/** On standard error, so that the output with `--json` stays one document. */
function tellPreview(preview: DeletionPreview, tenantId: string): void {
  for (const line of previewLines(preview, tenantId)) say(line)
}

/** Asks until the preview that was shown is still correct, or the person types something else. */
async function askAndErase(
  api: ApiClient,
  body: Readonly<Record<string, unknown>>,
  preview: DeletionPreview,
  tenantId: string,
): Promise<ApiResponse<DeletionRequest>> {
  if (process.stdin.isTTY !== true) {
    throw new CommandFailure(
      `There is no terminal to ask in, so nothing is erased: use --confirm ${tenantId}, or --dry-run to see what would be erased.`,
    )
  }
  for (let shown = preview; ; ) {
    const confirm = await ask(`Type ${tenantId} to erase it: `)
    if (confirm !== tenantId) throw new CommandFailure('That is not the tenant_id; nothing is erased.')
    try {
      return await post(api, { ...body, confirm, preview_id: shown.id })
    } catch (error) {
      const now = staleOf(error)
      if (now === null) throw error
      shown = now
      say('The selected telemetry has changed meanwhile:')
      tellPreview(shown, tenantId)
    }
  }
}

async function ask(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return (await lines.question(harmless(question))).trim()
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'AbortError') throw error
    say('')
    throw new CommandFailure('Nothing is erased.', exitCodes.interrupted)
  } finally {
    lines.close()
  }
}

/** Because of the key, an HTTP request that a proxy sends twice is the same deletion request. */
function post(
  api: ApiClient,
  json: Readonly<Record<string, unknown>>,
): Promise<ApiResponse<DeletionRequest>> {
  return api.call(deletionOperations.create, { json, idempotencyKey: randomUUID() })
}

async function report(
  follower: { readonly api: ApiClient; readonly clock: Clock } & JsonOption,
  asked: ApiResponse<DeletionRequest>,
  { json, wait }: EraseOptions,
): Promise<void> {
  const { request_id: requestId } = asked.value
  if (!wait) {
    if (json) return printJson(asked.json)
    for (const line of deletionLines(asked.value)) print(line)
    return print(`To follow it: lethe deletions watch ${requestId}`)
  }
  const ended = json
    ? await followDeletion(follower, requestId, () => {}, true)
    : await watchOnOutput(follower, requestId, true)
  if (json) printJson(ended.json)
  requireCompleted(ended)
}
