// What the demo prints: a progress line while it loads, and at the end a page of things to try, as commands that
// can be pasted into a shell as they stand. Both are pure functions of facts; nothing here asks the service, the
// clock or the terminal. Without a terminal (a log file, CI) progress is a line per 10 %, never a carriage return.

import { instantText } from '../core/clock.ts'
import type { LoadProgress } from './load.ts'
import type { Shop } from './shop.ts'

export interface GuideFacts {
  /** Such as `http://127.0.0.1:8080`, without a slash at its end. */
  readonly baseUrl: string
  readonly tenantId: string
  /** Token of an owner: reads, changes detectors and deletes. */
  readonly ownerToken: string
  /** Token that can only send telemetry. */
  readonly ingestToken: string
  /** What a detector found in the history; absent when none has run yet. */
  readonly anomaly?: {
    readonly id: string
    /** One sentence for a person. */
    readonly sentence: string
  }
  /** A detector to change; absent when there is none. */
  readonly detectorId?: string
  /** RFC 3339 with an offset; the deletion to try removes everything before it. */
  readonly eraseBefore: string
  /** What happened in the shop, oldest first. */
  readonly story?: readonly { readonly at: string; readonly sentence: string }[]
  /** Minutes until the incident that is still to come; absent when it is past. */
  readonly nextIncidentMinutes?: number
}

/** The guide as text with a line break at its end; `colour` adds ANSI bold and dim. */
export function renderGuide(facts: GuideFacts, { colour = false }: { colour?: boolean } = {}): string {
  const sections = [
    access(facts),
    story(facts),
    anomalies(facts),
    detector(facts),
    deletion(facts),
    ownTelemetry(facts),
  ]
  return sections
    .filter((section) => section !== undefined)
    .map(({ title, lines }) => `${heading(title, colour)}\n${lines.map(indent).join('\n')}\n`)
    .join('\n')
}

/** The story of a shop as facts for the guide: what is over or under way at `nowMs`, and the wait for what is to come. */
export function storyOf(shop: Shop, nowMs: number): Pick<GuideFacts, 'story' | 'nextIncidentMinutes'> {
  const nowMinute = nowMs / 60_000
  const byStart = shop.incidents.toSorted((a, b) => a.startMinute - b.startMinute)
  const coming = byStart.find(({ startMinute }) => startMinute > nowMinute)
  return {
    story: byStart
      .filter(({ startMinute }) => startMinute <= nowMinute)
      .map(({ startMinute, seen }) => ({ at: instantText(startMinute * 60_000), sentence: seen })),
    ...(coming === undefined ? {} : { nextIncidentMinutes: coming.startMinute - nowMinute }),
  }
}

interface Section {
  readonly title: string
  readonly lines: readonly string[]
}

const indent = (line: string): string => (line === '' ? '' : `  ${line}`)

const heading = (title: string, colour: boolean): string => (colour ? `\u001b[1m${title}\u001b[0m` : title)

function access({ baseUrl, tenantId, ownerToken, ingestToken }: GuideFacts): Section {
  return {
    title: 'The demo organisation is ready',
    lines: [
      `service       ${baseUrl}`,
      `reference     ${baseUrl}/docs`,
      `tenant_id     ${tenantId}`,
      `owner token   ${ownerToken}`,
      `ingest token  ${ingestToken}`,
      '',
      'For the commands below:',
      `export LETHE=${shellWord(baseUrl)}`,
      `export TOKEN=${shellWord(ownerToken)}`,
    ],
  }
}

function story({ story: events = [], nextIncidentMinutes }: GuideFacts): Section | undefined {
  const lines = events.map(({ at, sentence }) => `${at}  ${sentence}`)
  if (nextIncidentMinutes !== undefined && nextIncidentMinutes > 0) {
    lines.push(`in about ${Math.ceil(nextIncidentMinutes)} minutes something will break while you watch`)
  }
  return lines.length === 0 ? undefined : { title: 'What happened in the shop', lines }
}

function anomalies({ anomaly }: GuideFacts): Section {
  const list = [...curl(''), '  "$LETHE/anomalies?limit=5"']
  if (anomaly === undefined) {
    return {
      title: 'List what the detectors find',
      lines: ['Nothing found yet; detectors run every few minutes.', ...list],
    }
  }
  return {
    title: 'Look at what a detector found',
    lines: [anomaly.sentence, ...list, ...curl(''), `  "$LETHE/anomalies/${pathWord(anomaly.id)}"`],
  }
}

function detector({ detectorId }: GuideFacts): Section | undefined {
  if (detectorId === undefined) return undefined
  return {
    title: 'Change a detector (partial update)',
    lines: [
      ...curl('-X PATCH'),
      `  "$LETHE/anomalies/detectors/${pathWord(detectorId)}" \\`,
      "  -H 'Content-Type: application/json' \\",
      `  -d ${shellWord(JSON.stringify({ window_minutes: 4320, schedule_minutes: 10 }))}`,
    ],
  }
}

function deletion({ tenantId, eraseBefore }: GuideFacts): Section {
  const body = { scope: 'range', range_end: eraseBefore, confirm: tenantId }
  return {
    title: 'Erase telemetry and watch it go',
    lines: [
      `Everything before ${eraseBefore}; "confirm" is your tenant_id:`,
      'ANSWER=$(curl -s -X POST -H "Authorization: Bearer $TOKEN" \\',
      '  "$LETHE/usage/storage/deletions" \\',
      "  -H 'Content-Type: application/json' \\",
      `  -d ${shellWord(JSON.stringify(body))}); echo "$ANSWER"`,
      '',
      'Ask until it is completed, which means removed and read back:',
      `ID=$(echo "$ANSWER" | sed -n 's/.*"request_id": *"\\([^"]*\\)".*/\\1/p')`,
      'until curl -s -H "Authorization: Bearer $TOKEN" "$LETHE/usage/storage/deletions/$ID" \\',
      `  | tee /dev/stderr | grep -q '"status": *"completed"'; do sleep 1; done`,
      '',
      'Then every step of it in the ledger, each entry holding the hash of the one before:',
      ...curl(''),
      '  "$LETHE/ledger"',
      '',
      'All of the organisation instead of a range, when you are done:',
      `  ${JSON.stringify({ scope: 'all', confirm: tenantId })}`,
    ],
  }
}

function ownTelemetry({ baseUrl, ingestToken }: GuideFacts): Section {
  return {
    title: 'Send your own telemetry: any OpenTelemetry SDK, no code',
    lines: [
      `export OTEL_EXPORTER_OTLP_ENDPOINT=${shellWord(baseUrl)}`,
      `export OTEL_EXPORTER_OTLP_HEADERS=${shellWord(`Authorization=Bearer%20${encodeURIComponent(ingestToken)}`)}`,
      'export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf',
      'export OTEL_SERVICE_NAME=my-service',
    ],
  }
}

const curl = (options: string): string[] => [
  `curl -s ${options === '' ? '' : `${options} `}-H "Authorization: Bearer $TOKEN" \\`,
]

const pathWord = (id: string): string => encodeURIComponent(id)

/** One word for a POSIX shell, quoted unless it is plain. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}

export interface ProgressOutput {
  write(text: string): void
  /** Whether a line can be written over. */
  readonly isTerminal: boolean
}

/** Gives the function to call with each progress; it writes to `output` only, and at most every 10 % without a terminal. */
export function openProgressLine(output: ProgressOutput): (progress: LoadProgress) => void {
  let shownTenths = -1
  let isEnded = false
  return (progress) => {
    if (isEnded) return
    const isDone = progress.doneRows >= progress.totalRows
    // The total is an estimate: rounding up may only say 100 % at the true end.
    const share = isDone ? 1 : Math.min(0.99, progress.doneRows / Math.max(1, progress.totalRows))
    const line = `Loading telemetry ${bar(share)} ${lineOf(progress, share)}`
    isEnded = isDone
    if (output.isTerminal) return output.write(`\r\u001b[2K${line}${isDone ? '\n' : ''}`)
    const tenths = Math.floor(share * 10)
    if (tenths <= shownTenths) return
    shownTenths = tenths
    output.write(`${line}\n`)
  }
}

const bar = (share: number): string => {
  const filled = Math.round(share * 20)
  return `[${'#'.repeat(filled)}${'.'.repeat(20 - filled)}]`
}

function lineOf({ doneRows, elapsedMs }: LoadProgress, share: number): string {
  const percent = `${Math.floor(share * 100)}`.padStart(3)
  const rows = doneRows.toLocaleString('en-US')
  const perSecond = elapsedMs > 0 ? Math.round((doneRows * 1000) / elapsedMs).toLocaleString('en-US') : '-'
  return `${percent} %  ${rows} rows  ${perSecond} rows/s  ${(elapsedMs / 1000).toFixed(1)} s`
}
