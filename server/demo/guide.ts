// The output of the demo: a progress line while it loads, and at the end commands to try, which can be pasted
// into a shell. Both are pure functions of facts; this file does not use the service, the clock or the
// terminal. Without a terminal (a log file, CI), progress is a line per 10 %, never a carriage return.

import type { ListedAnomaly } from '../../contract/detection/context.ts'
import { instantText } from '../core/clock.ts'
import type { LoadProgress } from './load.ts'
import type { Shop, ShopIncident } from './shop.ts'

export interface GuideFacts {
  /** Such as `http://127.0.0.1:8080`, without a slash at its end. */
  readonly baseUrl: string
  readonly tenantId: string
  /** A link that signs in to the console once. */
  readonly consoleLink: string
  /** Token of an owner, which can read, change detectors and erase. */
  readonly ownerToken: string
  /** Token that can only send telemetry. */
  readonly ingestToken: string
  /** The anomaly to look at first; absent where none was found. */
  readonly anomalyId?: string
  /** A detector to change; absent where there is none. */
  readonly detectorId?: string
  /** RFC 3339 with an offset; the deletion to try removes everything before it. */
  readonly eraseBefore: string
  /** Incidents of the shop, oldest first. */
  readonly incidents?: readonly PastIncident[]
  /** Minutes until the next incident; absent when it is past. */
  readonly nextIncidentMinutes?: number
}

/** An incident of the shop, and the anomalies of its time. */
interface PastIncident {
  readonly at: string
  readonly sentence: string
  /** Reasons of the anomalies, the earliest first. */
  readonly reasons: readonly string[]
}

/** The fields of an anomaly that the guide uses. */
type Found = Pick<ListedAnomaly, 'id' | 'started_at' | 'seen_until' | 'reason' | 'related_ids'>

/** The guide as text with a line break at its end; `colour` adds ANSI bold and dim. */
export function renderGuide(facts: GuideFacts, { colour = false }: { colour?: boolean } = {}): string {
  const sections = [
    access(facts),
    happened(facts),
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

/**
 * Returns the facts about the shop's incidents: those that have begun at `nowMs` with their anomalies, the
 * anomaly with the most related ones, and the time until the next incident.
 */
export function incidentFacts(
  shop: Shop,
  nowMs: number,
  found: readonly Found[],
): Pick<GuideFacts, 'incidents' | 'nextIncidentMinutes' | 'anomalyId'> {
  const nowMinute = nowMs / 60_000
  const byStart = shop.incidents.toSorted((a, b) => a.startMinute - b.startMinute)
  const coming = byStart.find(({ startMinute }) => startMinute > nowMinute)
  const [most] = found.toSorted((a, b) => b.related_ids.length - a.related_ids.length)
  return {
    incidents: byStart
      .filter(({ startMinute }) => startMinute <= nowMinute)
      .map((incident) => ({
        at: instantText(incident.startMinute * 60_000),
        sentence: incident.seen,
        reasons: foundIn(incident, found).map(({ reason }) => reason),
      })),
    ...(coming === undefined ? {} : { nextIncidentMinutes: coming.startMinute - nowMinute }),
    ...(most === undefined ? {} : { anomalyId: most.id }),
  }
}

/** Returns the anomalies that overlap an incident in time, the earliest first. */
export function foundIn<T extends Pick<Found, 'started_at' | 'seen_until'>>(
  { endMinute, startMinute }: Pick<ShopIncident, 'startMinute' | 'endMinute'>,
  found: readonly T[],
): T[] {
  const minuteOf = (instant: string) => Date.parse(instant) / 60_000
  return found
    .filter((one) => minuteOf(one.started_at) < endMinute && minuteOf(one.seen_until) > startMinute)
    .sort((a, b) => minuteOf(a.started_at) - minuteOf(b.started_at))
}

interface Section {
  readonly title: string
  readonly lines: readonly string[]
}

const indent = (line: string): string => (line === '' ? '' : `  ${line}`)

const heading = (title: string, colour: boolean): string => (colour ? `\u001b[1m${title}\u001b[0m` : title)

function access({ baseUrl, consoleLink, tenantId, ownerToken, ingestToken }: GuideFacts): Section {
  return {
    title: 'The demo organisation is ready',
    lines: [
      'Open the console; this link signs you in once, within an hour:',
      consoleLink,
      '',
      `service       ${baseUrl}`,
      `reference     ${baseUrl}/docs`,
      `tenant_id     ${tenantId}`,
      `owner token   ${ownerToken}`,
      `ingest token  ${ingestToken}`,
      '',
      'For the commands below:',
      `export LETHE_URL=${shellWord(baseUrl)}`,
      `export LETHE_TOKEN=${shellWord(ownerToken)}`,
    ],
  }
}

function happened({ incidents = [], nextIncidentMinutes }: GuideFacts): Section | undefined {
  const lines = incidents.flatMap(({ at, sentence, reasons }) => [
    `${at}  ${sentence}`,
    ...reasonLines(reasons),
  ])
  if (nextIncidentMinutes !== undefined && nextIncidentMinutes > 0) {
    lines.push(`in about ${Math.ceil(nextIncidentMinutes)} minutes another incident begins`)
  }
  return lines.length === 0
    ? undefined
    : { title: 'What happened in the shop, and what the detectors reported', lines }
}

const reasonsShown = 3

function reasonLines(reasons: readonly string[]): string[] {
  if (reasons.length === 0) return ['    (no detector reported it)']
  const more = reasons.length - reasonsShown
  return [
    ...reasons.slice(0, reasonsShown).flatMap((reason) => bullet(reason)),
    ...(more > 0 ? [`    and ${more} more ${more === 1 ? 'anomaly' : 'anomalies'}`] : []),
  ]
}

const lineLength = 100

/** A sentence as an item of a list, over as many lines as it needs. */
function bullet(sentence: string): string[] {
  const lines = ['']
  for (const word of sentence.split(' ')) {
    const line = lines.at(-1) ?? ''
    if (line.length + word.length + 1 > lineLength) lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines.map((line, i) => `${i === 0 ? '    - ' : '      '}${line}`)
}

function anomalies({ anomalyId }: GuideFacts): Section {
  const list = [...curl(''), '  "$LETHE_URL/anomalies?limit=20"']
  if (anomalyId === undefined) {
    return {
      title: 'List anomalies',
      lines: ['No anomalies yet; detectors run every few minutes.', ...list],
    }
  }
  return {
    title: 'Look at the anomalies',
    lines: [
      'All of them; "related_ids" lists anomalies that may belong to the same incident:',
      ...list,
      'One of them; "context" lists related anomalies, and why they are related:',
      ...curl(''),
      `  "$LETHE_URL/anomalies/${pathWord(anomalyId)}"`,
    ],
  }
}

function detector({ detectorId }: GuideFacts): Section | undefined {
  if (detectorId === undefined) return undefined
  return {
    title: 'Change a detector (partial update)',
    lines: [
      ...curl('-X PATCH'),
      `  "$LETHE_URL/anomalies/detectors/${pathWord(detectorId)}" \\`,
      "  -H 'Content-Type: application/json' \\",
      `  -d ${shellWord(JSON.stringify({ window_minutes: 4320, schedule_minutes: 10 }))}`,
    ],
  }
}

function deletion({ tenantId, eraseBefore }: GuideFacts): Section {
  const body = { scope: 'range', range_end: eraseBefore, confirm: tenantId }
  return {
    title: 'Erase telemetry and follow the erasure',
    lines: [
      `Everything before ${eraseBefore}; "confirm" is your tenant_id:`,
      'ANSWER=$(curl -s -X POST -H "Authorization: Bearer $LETHE_TOKEN" \\',
      '  "$LETHE_URL/usage/storage/deletions" \\',
      "  -H 'Content-Type: application/json' \\",
      `  -d ${shellWord(JSON.stringify(body))}); echo "$ANSWER"`,
      '',
      'Follow it until it ends: hidden, removed, and verified by a second count:',
      `ID=$(echo "$ANSWER" | sed -n 's/.*"request_id": *"\\([^"]*\\)".*/\\1/p')`,
      './lethe deletions watch "$ID"',
      '',
      'The same in one command, which first shows what would be erased:',
      `./lethe erase range --until ${shellWord(eraseBefore)} --wait`,
      '',
      'Then all its entries in the ledger, each with the hash of the previous one:',
      ...curl(''),
      '  "$LETHE_URL/ledger"',
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
  `curl -s ${options === '' ? '' : `${options} `}-H "Authorization: Bearer $LETHE_TOKEN" \\`,
]

const pathWord = (id: string): string => encodeURIComponent(id)

/** Quotes a word for a POSIX shell where necessary. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}

interface ProgressOutput {
  write(text: string): void
  /** Whether a line can be overwritten. */
  readonly isTerminal: boolean
}

/**
 * Returns a function to call with each progress. It writes only to `output`, and without a terminal at most
 * every 10 %.
 */
export function openProgressLine(output: ProgressOutput): (progress: LoadProgress) => void {
  let shownTenths = -1
  let isEnded = false
  return (progress) => {
    if (isEnded) return
    const isDone = progress.doneRows >= progress.totalRows
    // The total is an estimate: 100 % is shown only at the real end.
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
