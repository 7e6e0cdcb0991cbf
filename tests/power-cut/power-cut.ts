// Cuts the power of the file system under the running service and checks what exists afterwards. Each round
// has a new image with its own file system; the real service runs on it in its own process, and senders in
// another process post small bodies of metrics, logs and traces in closed loops, so that there are many parts
// and merges. At an instant drawn from the seed the file system is shut down without flushing its log, the
// service is killed, and the image is mounted again. There are three kinds of rounds in turn: "busy";
// "erasing", where an erasure of a range is in progress; and "quiet", where one sender sends a body now and
// then and the power is cut at the instant of an acknowledgement, so that no later commit has made it
// durable. Afterwards these must be true: the service starts by itself; every body acknowledged before the
// cut exists completely; no row exists twice; a neighbour in the placement of the erasure is unchanged, byte
// for byte; every part can be read completely; nothing is in a `detached` folder; the erasure ends; and so
// does one of everything of an organisation, with the rows of all others unchanged. The tables and the data
// from before have been in the folder long enough to be on the disk when the senders begin; with
// --first-start they have not, and the power is cut within seconds of the very first start. LETHE_FSYNC and
// all other settings are those of the environment. Needs root, loop devices and xfs_io (xfsprogs). Prints a
// line of JSON for each round and ends with 1 where one has failed, with 2 where the machine lacks something.
//
// npm run power-cut -- [--rounds 5] [--seed 1] [--seconds 10] [--filesystem ext4|xfs] [--first-start] [--root
// /tmp]

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Product, startProduct } from '../../bench/deletion/product.ts'
import { organisationCount, tenantOf } from '../../bench/deletion/rows.ts'
import { provenance } from '../../bench/provenance.ts'
import { seededUniform } from '../../server/detection/scoring/seeded-random.ts'
import { type Signal, signals } from '../../server/telemetry/schema/tables.ts'
import { bodyOf, erasedRange, identities, survivorsOf } from './bodies.ts'
import {
  countBodies,
  fingerprint,
  judge,
  type PartsOnDisk,
  partsOnDisk,
  rowsIn,
  rowsInErasedRange,
  type Sent,
  type Stored,
  unreadable,
} from './check.ts'
import { type Disk, filesystems, makeDisk, missingRequirements } from './disk.ts'
import type { SenderAccount, SenderOrders } from './senders.ts'

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seed: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '10' },
    filesystem: { type: 'string', default: 'ext4' },
    root: { type: 'string', default: tmpdir() },
    'first-start': { type: 'boolean', default: false },
  },
})
const filesystem = filesystems.find((name) => name === flags.filesystem)
const missing =
  filesystem === undefined ? [`it knows ${filesystems.join(' and ')}`] : missingRequirements(filesystem)
if (filesystem === undefined || missing.length > 0) {
  process.stderr.write(`The test can't run here: ${missing.join('; ')}.\n`)
  process.exit(2)
}
const seed = Number(flags.seed)
const random = seededUniform(seed)

/**
 * Has history over twelve weeks and sends nothing; in some rounds a range of it is being erased at the cut.
 */
const erased = 0
/**
 * Shares the placement of the erased organisation and has the same history. All others have their own
 * placement.
 */
const neighbour = organisationCount
/** Few, so that each of their partitions gets ten parts and merges during a round. */
const senders = [1, 2, 3, 4, 5]
/** The sender that is erased completely at the end. */
const departing = 1
const historyBodies = 4

const kinds = ['busy', 'erasing', 'quiet'] as const
type Kind = (typeof kinds)[number]

/**
 * Pause of the sender in a quiet round. Shorter than the five seconds after which the file system commits its
 * journal by itself.
 */
const pauseMs = 400

const startLimitS = 60
/**
 * A twentieth of a second each. Waiting counts polls and not time, so that a machine that pauses does not
 * change the result.
 */
const erasureLooks = 600

/** Frequent commits make many parts, so that merges are in progress; the environment may override it. */
const settings = { LETHE_COMMIT_DELAY_MS: process.env.LETHE_COMMIT_DELAY_MS ?? '50', LETHE_LOG_LEVEL: 'warn' }

/** What must be ended and removed, however this program ends. */
const opened: { disk?: Disk; ends: (() => unknown)[] } = { ends: [] }
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    for (const end of opened.ends) end()
    opened.disk?.remove()
    process.exit(130)
  })

process.stdout.write(
  `${JSON.stringify({ bench: 'storage/power-cut', ...provenance(), seed, filesystem, fsync: process.env.LETHE_FSYNC ?? 'on', firstStart: flags['first-start'] })}\n`,
)
let failed = 0
for (let round = 0; round < Number(flags.rounds); round++) {
  const disk = makeDisk(flags.root, filesystem)
  opened.disk = disk
  try {
    const { failures, ...facts } = await cutOnce(disk, kinds[round % kinds.length] ?? 'busy').catch(
      (error: unknown): RoundResult => ({ failures: [`the round was interrupted: ${messageOf(error)}`] }),
    )
    if (failures.length > 0) failed++
    process.stdout.write(`${JSON.stringify({ round, ...facts, failures, ok: failures.length === 0 })}\n`)
  } finally {
    for (const end of opened.ends.splice(0)) await end()
    disk.remove()
  }
}
process.exit(failed > 0 ? 1 : 0)

interface RoundResult extends Record<string, unknown> {
  readonly failures: string[]
}

async function cutOnce(disk: Disk, kind: Kind): Promise<RoundResult> {
  const isErasing = kind === 'erasing'
  const dataDir = join(disk.mount, 'data')
  const cutAfterMs = Number(flags.seconds) * 1000 * (0.4 + 0.6 * random())
  const erasingSinceMs = isErasing ? 20 + 700 * random() : null
  const before = await start(dataDir, () => {})
  const history = await sendHistory(before)
  const print = await fingerprint(before, tenantOf(neighbour))
  if (!flags['first-start']) disk.settle()
  const crowd = startSenders(before, kind)
  await sleep(cutAfterMs - (erasingSinceMs ?? 0))
  const asked = isErasing ? askErasure(before, erased, 'range').catch(() => null) : null
  await sleep(erasingSinceMs ?? 0)
  if (kind === 'quiet') await nextAcknowledgement(crowd)
  const cutAtMs = Date.now()
  disk.cut()
  await before.kill()
  const requestId = await asked
  const sent: Sent[] = [...history, ...(await accountOf(crowd))]
  await disk.remount()
  const engine = before.folder
  const left = partsOnDisk(engine)
  const facts = {
    kind,
    cutAfterS: seconds(cutAfterMs),
    erasingForMs: erasingSinceMs === null ? null : Math.round(erasingSinceMs),
    afterCut: counted(engine, left),
  }

  const lines: string[] = []
  const sinceMs = performance.now()
  let after: Product
  try {
    after = await start(dataDir, (line) => lines.push(line))
  } catch (error) {
    return { ...facts, ...logged(lines), failures: [`the service doesn't start: ${messageOf(error)}`] }
  }
  const startS = seconds(performance.now() - sinceMs)
  const atStart = { ...counted(engine, left), ...logged([...lines]) }
  const found = await checks(after, { sent, cutAtMs, print, requestId, isErasing })
  const failures = [...found.failures]
  const { detached } = partsOnDisk(engine)
  if (detached.length > 0) failures.push(`detached: ${detached.slice(0, 5).join(', ')}`)
  await after.stop()
  return {
    ...facts,
    startS,
    atStart,
    ...found.facts,
    atTheEnd: counted(engine, left),
    failures,
  }
}

/** What is on the disk now, and how many of the parts left by the cut are gone; merges remove some too. */
function counted(engineFolder: string, left: PartsOnDisk): object {
  const { folders, detached, ...rest } = partsOnDisk(engineFolder)
  const there = new Set(folders)
  const gone = left.folders.filter((folder) => !there.has(folder)).length
  return { parts: folders.length, ...rest, gone, detached: detached.length }
}

interface Known {
  readonly sent: readonly Sent[]
  readonly cutAtMs: number
  /** The neighbour's, before the cut. */
  readonly print: string
  /** Null where none was requested, or its 202 had not arrived by the cut. */
  readonly requestId: string | null
  readonly isErasing: boolean
}

async function checks(product: Product, known: Known): Promise<{ facts: object; failures: string[] }> {
  const failures: string[] = []
  const expect = (isTrue: boolean, otherwise: string) => {
    if (!isTrue) failures.push(otherwise)
  }
  const bad = await unreadable(product)
  expect(bad.length === 0, `unreadable: ${bad.slice(0, 3).join('; ')}`)
  const erasure = known.isErasing ? await endErasure(product, known.requestId) : null
  const stored = await countBodies(product)
  const erasedTenant = tenantOf(erased)
  if (erasure !== null) {
    expect(
      erasure.state === 'completed' || erasure.state === 'never begun',
      `the erasure in progress: ${erasure.state}`,
    )
    expect(known.requestId === null || erasure.state === 'completed', 'an accepted erasure is lost')
  }
  const isErased = erasure?.state === 'completed'
  if (isErased) {
    const rows = await rowsInErasedRange(product, erasedTenant)
    expect(rows === 0, `${rows} rows of the erased range`)
    expect(
      rowsIn(stored, erasedTenant) === survivorRows(),
      `${rowsIn(stored, erasedTenant)} survivors, not ${survivorRows()}`,
    )
  }
  const owed = known.sent.filter(({ organisation }) => !(isErased && organisation === erased))
  const others = new Map([...stored].filter(([key]) => !(isErased && key.startsWith(`${erasedTenant} `))))
  const { lost, ...result } = judge(others, owed, known.cutAtMs)
  expect(result.bodiesLost === 0, `lost: ${lost.join('; ')}`)
  expect(result.rowsTwice === 0, `${result.rowsTwice} rows exist twice`)
  expect(result.rowsOfOthers === 0, `${result.rowsOfOthers} rows that nobody sent`)
  expect((await fingerprint(product, tenantOf(neighbour))) === known.print, 'the neighbour has changed')

  const leaving = await endErasure(product, await askErasure(product, departing, 'all'), departing)
  expect(leaving.state === 'completed', `the full erasure: ${leaving.state}`)
  const rest = await countBodies(product)
  expect(
    rowsIn(rest, tenantOf(departing)) === 0,
    `${rowsIn(rest, tenantOf(departing))} rows of the erased organisation`,
  )
  expect(sameBut(stored, rest, tenantOf(departing)), 'the full erasure has changed rows of others')
  const facts = { ...result, rowsStored: rowsIn(stored), erasureUnderWay: erasure, erasureOfAll: leaving }
  return { facts, failures }
}

function survivorRows(): number {
  const bodies = Array.from({ length: historyBodies }, (_, body) => survivorsOf(body))
  return bodies.reduce((sum, rows) => sum + rows, 0) * identities.length
}

function sameBut(before: Stored, after: Stored, tenantId: string): boolean {
  const rest = (stored: Stored) =>
    [...stored]
      .filter(([key]) => !key.startsWith(`${tenantId} `))
      .map((entry) => JSON.stringify(entry))
      .sort()
      .join('\n')
  return rest(before) === rest(after)
}

async function start(dataDir: string, onLine: (line: string) => void): Promise<Product> {
  const options = { organisations: neighbour + 1, env: settings, onLine, readyWithinS: startLimitS }
  const product = await startProduct(dataDir, options)
  opened.ends.push(() => product.kill())
  return product
}

/** Sends the history of the erased organisation and of its neighbour; they have the same rows. */
async function sendHistory(product: Product): Promise<Sent[]> {
  const sent: Sent[] = []
  for (const organisation of [erased, neighbour])
    for (const signal of signals) {
      const acknowledged = []
      for (let body = 0; body < historyBodies; body++) {
        const answer = await fetch(`${product.address}/v1/${signal}`, {
          method: 'POST',
          headers: headersOf(product, organisation, 'application/x-protobuf'),
          body: new Uint8Array(bodyOf(signal, 'history', body)),
        })
        if (answer.status !== 200)
          throw new Error(`History returned ${answer.status}: ${await answer.text()}`)
        acknowledged.push({ body, atMs: Date.now() })
      }
      sent.push({ organisation, signal, spread: 'history', sent: historyBodies, acknowledged, otherwise: {} })
    }
  return sent
}

function startSenders({ address, secretOf }: Product, kind: Kind): ChildProcess {
  const crowd = fork(fileURLToPath(new URL('senders.ts', import.meta.url)), {
    execArgv: ['--disable-warning=ExperimentalWarning'],
  })
  opened.ends.push(() => crowd.kill('SIGKILL'))
  const senderOf = (organisation: number, signal: Signal) => ({
    organisation,
    signal,
    secret: secretOf(organisation),
  })
  const orders: SenderOrders =
    kind === 'quiet'
      ? { address, senders: [senderOf(departing, 'logs')], pauseMs }
      : { address, senders: senders.flatMap((one) => signals.map((signal) => senderOf(one, signal))) }
  crowd.send(orders)
  return crowd
}

async function nextAcknowledgement(crowd: ChildProcess): Promise<void> {
  const message = once(crowd, 'message')
  crowd.send('next')
  await message
}

async function accountOf(crowd: ChildProcess): Promise<Sent[]> {
  const account = once(crowd, 'message')
  crowd.send('account')
  const [accounts] = (await account) as [SenderAccount[]]
  crowd.disconnect()
  return accounts.map((one) => ({ ...one, spread: 'fresh' }))
}

function headersOf(
  product: Product,
  organisation: number,
  mediaType = 'application/json',
): Record<string, string> {
  return { authorization: `Bearer ${product.secretOf(organisation)}`, 'content-type': mediaType }
}

/** Requests an erasure; returns its id, or null where it wasn't accepted. */
async function askErasure(
  product: Product,
  organisation: number,
  scope: 'all' | 'range',
): Promise<string | null> {
  const range = {
    range_start: new Date(erasedRange.startMs).toISOString(),
    range_end: new Date(erasedRange.endMs).toISOString(),
  }
  const answer = await fetch(`${product.address}/usage/storage/deletions`, {
    method: 'POST',
    headers: headersOf(product, organisation),
    body: JSON.stringify({ scope, confirm: tenantOf(organisation), ...(scope === 'range' ? range : {}) }),
  })
  const { request_id } = (await answer.json()) as { request_id?: string }
  return request_id ?? null
}

/** Waits for an erasure, or for the one that was accepted although its response was lost. */
async function endErasure(
  product: Product,
  requestId: string | null,
  organisation = erased,
): Promise<{ state: string; s: number }> {
  const path = `${product.address}/usage/storage/deletions`
  const headers = headersOf(product, organisation)
  const sinceMs = performance.now()
  const passedS = () => seconds(performance.now() - sinceMs)
  let id = requestId
  if (id === null) {
    const list = (await (await fetch(path, { headers })).json()) as { items: { request_id: string }[] }
    id = list.items[0]?.request_id ?? null
  }
  if (id === null) return { state: 'never begun', s: passedS() }
  for (let looks = 0; ; looks++) {
    const answer = await fetch(`${path}/${id}`, { headers })
    const { status } = (await answer.json()) as { status?: string }
    if (status === 'completed') return { state: status, s: passedS() }
    if (looks > erasureLooks) return { state: status ?? `status ${answer.status}`, s: passedS() }
    await sleep(50)
  }
}

/** The log of the start, and its length. */
function logged(lines: readonly string[]): { logLines: number; log: string[] } {
  return { logLines: lines.length, log: lines.slice(0, 4).map((line) => line.slice(0, 300)) }
}

function seconds(ms: number): number {
  return Number((ms / 1000).toFixed(2))
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
