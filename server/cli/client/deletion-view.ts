// A deletion as text for people: the times of its three stages, a bar of the steps, and what it waits for.
// Pure functions of the service's response.

import {
  type DeletionPreview,
  type DeletionRequest,
  finalDeletionStatuses,
} from '../../../contract/deletion/requests.ts'
import { bytesText, countText, durationText, table } from './text.ts'

/** Whether the service does nothing more with it without a decision of a person. */
export function hasEnded({ status }: Pick<DeletionRequest, 'status'>): boolean {
  return finalDeletionStatuses.some((final) => final === status)
}

interface Selection {
  readonly scope: DeletionRequest['scope']
  readonly range_start: string | null
  readonly range_end: string | null
}

function rangeText({ range_end, range_start, scope }: Selection): string {
  if (scope === 'all' || range_end === null) return 'everything'
  return range_start === null ? `everything before ${range_end}` : `from ${range_start} to ${range_end}`
}

const barWidth = 30

/** 0 to 1: nine tenths for the steps, the last tenth for the verification. */
export function progressFraction(deletion: DeletionRequest): number {
  if (deletion.status === 'completed') return 1
  const [done, total] = [numberOf(deletion, 'steps_done'), numberOf(deletion, 'steps_total')]
  if (deletion.removed_at !== null) return 0.9
  return total === 0 ? 0 : 0.9 * Math.min(1, done / total)
}

/** Several lines, in the order of the stages. */
export function deletionLines(deletion: DeletionRequest): string[] {
  const share = progressFraction(deletion)
  const full = Math.round(share * barWidth)
  const bar = `${'█'.repeat(full)}${'░'.repeat(barWidth - full)}`
  return [
    `${deletion.request_id}  ${rangeText(deletion)}`,
    `  [${bar}] ${String(Math.floor(share * 100)).padStart(3)} %  ${deletion.status}`,
    `  signals   ${deletion.signals.join(', ')}`,
    ...workLines(deletion),
    `  hidden    ${clockText(deletion, deletion.hidden_at)}`,
    `  removed   ${clockText(deletion, deletion.removed_at)}`,
    `  verified  ${clockText(deletion, deletion.verified_at)}`,
    `  backups   ${backupsText(deletion)}`,
    ...waitingFor(deletion).map((line) => `  ${line}`),
  ]
}

/** One line, for a list or a log. */
export function deletionLine(deletion: DeletionRequest): string {
  return [
    deletion.request_id,
    deletion.status.padEnd(9),
    `${String(Math.floor(progressFraction(deletion) * 100)).padStart(3)} %`,
    rangeText(deletion),
    `hidden ${deletion.hidden_at ?? '-'}`,
    `removed ${deletion.removed_at ?? '-'}`,
    `verified ${deletion.verified_at ?? '-'}`,
    ...waitingFor(deletion),
  ].join('  ')
}

/** Everything of it that a person would see change; a line is printed only when this text changes. */
export function changeKey(deletion: DeletionRequest): string {
  return deletionLines(deletion).join('\n')
}

function clockText({ created_at }: DeletionRequest, at: string | null): string {
  if (at === null) return '-'
  const afterMs = Date.parse(at) - Date.parse(created_at)
  return `${at}  (${durationText(afterMs)} after it was asked for)`
}

function backupsText({ backups_clear_by }: DeletionRequest): string {
  return backups_clear_by === null ? 'none is known to have a copy' : `have a copy until ${backups_clear_by}`
}

function workLines(deletion: DeletionRequest): string[] {
  const [done, total] = [numberOf(deletion, 'steps_done'), numberOf(deletion, 'steps_total')]
  const [rows, bytes] = [numberOf(deletion, 'rows_erased'), numberOf(deletion, 'bytes_erased')]
  if (total === 0) return []
  return [`  erased    ${countText(rows)} rows, ${bytesText(bytes)}, in ${done} of ${total} steps`]
}

function waitingFor(deletion: DeletionRequest): string[] {
  const { approve_by, detail, starts_at, status } = deletion
  const held = Array.isArray(detail.held_by) ? detail.held_by.map(String) : []
  return [
    ...(status === 'awaiting_approval' ? [`a second person must approve it by ${approve_by}`] : []),
    ...(status === 'scheduled' && starts_at !== null ? [`removed from ${starts_at} on`] : []),
    ...(held.length > 0 ? [`legal holds keep a part of it: ${held.join(', ')}`] : []),
    ...(typeof detail.blocked_reason === 'string' ? [`blocked: ${detail.blocked_reason}`] : []),
    ...(typeof detail.next_attempt_at === 'string' ? [`tried again at ${detail.next_attempt_at}`] : []),
    ...(typeof detail.erased_by === 'string' ? [`erased by the wider ${detail.erased_by}`] : []),
  ]
}

/** `detail` is free-form: a number that is absent, or of another type, counts as 0. */
function numberOf({ detail }: DeletionRequest, name: string): number {
  const value = detail[name]
  return typeof value === 'number' ? value : 0
}

/** What would be erased, for the person who is about to confirm it. */
export function previewLines(preview: DeletionPreview, tenantId: string): string[] {
  const rows = [
    ['', 'rows', 'bytes', 'first', 'last', 'services'],
    ...preview.signals.map(({ bytes, first, last, rows: count, services, services_total, signal }) => {
      const named = services.slice(0, 3).join(', ')
      const more = services_total > 3 ? ` and ${services_total - 3} more` : ''
      return [signal, countText(count), bytesText(bytes), first ?? '-', last ?? '-', `${named}${more}` || '-']
    }),
    ['total', countText(preview.rows), bytesText(preview.bytes), '', '', ''],
  ]
  const { anomalies, anomalies_learned_from } = preview.derived
  return [
    `This would erase telemetry of ${tenantId}: ${rangeText(preview)}`,
    ...table(rows, [1, 2]).map((line) => `  ${line}`),
    ...(anomalies + anomalies_learned_from > 0
      ? [
          `  and ${countOf(anomalies, 'anomaly', 'anomalies')}, and the ${anomalies_learned_from === 1 ? 'band' : 'bands'} of ${anomalies_learned_from} later`,
        ]
      : []),
    ...preview.held.map(
      (hold) => `  legal hold ${hold.hold_id} keeps ${heldText(hold)} until it is released`,
    ),
    ...(preview.backups_clear_by === null
      ? []
      : [
          `  ${countOf(preview.backups.length, 'backup has', 'backups have')} a copy, the last until ${preview.backups_clear_by}`,
        ]),
    ...preview.warnings.map(({ message }) => `  warning: ${message}`),
    ...(preview.needs_approval ? ['  a second owner or admin must approve it'] : []),
  ]
}

function countOf(count: number, one: string, more: string): string {
  return `${countText(count)} ${count === 1 ? one : more}`
}

function heldText({ range_end, range_start, signals }: DeletionPreview['held'][number]): string {
  return `${signals.join(', ')} from ${range_start ?? 'the beginning'} to ${range_end ?? 'the end'}`
}
