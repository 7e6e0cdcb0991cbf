// What the demo prints: a progress line while it loads, and at the end a page of things to try, as commands
// that can be pasted into a shell as they stand. Both are pure functions of facts; nothing here asks the
// service, the clock or the terminal. Without a terminal (a log file, CI) progress is a line per 10 %,
// never a carriage return.

import type { ListedAnomaly } from '../../contract/detection-context.ts'
import { instantText } from '../core/clock.ts'
import type { LoadProgress } from './load.ts'
import type { Shop, ShopIncident } from './shop.ts'

export interface GuideFacts {
  /** Such as `http://127.0.0.1:8080`, without a slash at its end. */
  readonly baseUrl: string
  readonly tenantId: string
  /** Token of an owner: reads, changes detectors and deletes. */
  readonly ownerToken: string
  /** Token that can only send telemetry. */
  readonly ingestToken: string
  /** The anomaly to look at first; absent when none was found. */
  readonly anomalyId?: string
  /** A detector to change; absent when there is none. */
  readonly detectorId?: string
  /** RFC 3339 with an offset; the deletion to try removes everything before it. */
  readonly eraseBefore: string
  /** What happened in the shop, oldest first. */
  readonly story?: readonly Chapter[]
  /** Minutes until the incident that is still to come; absent when it is past. */
  readonly nextIncidentMinutes?: number
}

/** An incident of the shop, and what the detectors say of it. */
interface Chapter {
  readonly at: string
  readonly sentence: string
  /** Reasons of the anomalies of its time, the earliest first. */
  readonly told: readonly string[]
}

/** What the guide needs to know of an anomaly. */
type Found = Pick<ListedAnomaly, 'id' | 'started_at' | 'seen_until' | 'reason' | 'related_ids'>

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

/**
 * The story of a shop as facts for the guide: what is over or under way at `nowMs` with what was found of it,
 * the anomaly with the most company, and the wait for what is to come.
 */
export function storyOf(
  shop: Shop,
  nowMs: number,
  found: readonly Found[],
): Pick<GuideFacts, 'story' | 'nextIncidentMinutes' | 'anomalyId'> {
  const nowMinute = nowMs / 60_000
  const byStart = shop.incidents.toSorted((a, b) => a.startMinute - b.startMinute)
  const coming = byStart.find(({ startMinute }) => startMinute > nowMinute)
  const [most] = found.toSorted((a, b) => b.related_ids.length - a.related_ids.length)
  return {
    story: byStart
      .filter(({ startMinute }) => startMinute <= nowMinute)
      .map((incident) => ({
        at: instantText(incident.startMinute * 60_000),
        sentence: incident.seen,
        told: foundIn(incident, found).map(({ reason }) => reason),
      })),
    ...(coming === undefined ? {} : { nextIncidentMinutes: coming.startMinute - nowMinute }),
    ...(most === undefined ? {} : { anomalyId: most.id }),
  }
}

/** The anomalies that overlap an incident in time, the earliest first. */
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
      `export LETHE_URL=${shellWord(baseUrl)}`,
      `export LETHE_TOKEN=${shellWord(ownerToken)}`,
    ],
  }
}

function story({ story: chapters = [], nextIncidentMinutes }: GuideFacts): Section | undefined {
  const lines = chapters.flatMap(({ at, sentence, told }) => [`${at}  ${sentence}`, ...toldLines(told)])
  if (nextIncidentMinutes !== undefined && nextIncidentMinutes > 0) {
    lines.push(`in about ${Math.ceil(nextIncidentMinutes)} minutes something will break while you watch`)
  }
  return lines.length === 0
    ? undefined
    : { title: 'What happened in the shop, and what the detectors say of it', lines }
}

const toldShown = 3

function toldLines(told: readonly string[]): string[] {
  if (told.length === 0) return ['    (no detector has told of it)']
  const more = told.length - toldShown
  return [
    ...told.slice(0, toldShown).flatMap((reason) => bullet(reason)),
    ...(more > 0 ? [`    and ${more} more ${more === 1 ? 'anomaly' : 'anomalies'}`] : []),
  ]
}

const lineLength = 100

/** A sentence as a point of a list, over as many lines as it takes. */
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
      title: 'List what the detectors find',
      lines: ['Nothing found yet; detectors run every few minutes.', ...list],
    }
  }
  return {
    title: 'Look at what the detectors found',
    lines: [
      'All of it; "related_ids" names what may be of the same incident:',
      ...list,
      'One of it; "context" says what it is related to, and why:',
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
    title: 'Erase telemetry and watch it go',
    lines: [
      `Everything before ${eraseBefore}; "confirm" is your tenant_id:`,
      'ANSWER=$(curl -s -X POST -H "Authorization: Bearer $LETHE_TOKEN" \\',
      '  "$LETHE_URL/usage/storage/deletions" \\',
      "  -H 'Content-Type: application/json' \\",
      `  -d ${shellWord(JSON.stringify(body))}); echo "$ANSWER"`,
      '',
      'Follow it to its end: hidden, removed, and verified by a second count:',
      `ID=$(echo "$ANSWER" | sed -n 's/.*"request_id": *"\\([^"]*\\)".*/\\1/p')`,
      './lethe deletions watch "$ID"',
      '',
      'The same in one command, which shows first what would go:',
      `./lethe erase range --until ${shellWord(eraseBefore)} --wait`,
      '',
      'Then every step of it in the ledger, each entry holding the hash of the one before:',
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

/** One word for a POSIX shell, quoted unless it is plain. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}

interface ProgressOutput {
  write(text: string): void
  /** Whether a line can be written over. */
  readonly isTerminal: boolean
}

/**
 * Gives the function to call with each progress; it writes to `output` only, and at most every
 * 10 % without a terminal.
 */
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
