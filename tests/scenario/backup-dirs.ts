// A data folder with its backups, the services and commands that use it one after the other, and what two
// organisations can read there: for tests of backup and restore. Services that are killed have a process.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { App } from '../../server/app.ts'
import { BackupRegister } from '../../server/backup/register.ts'
import { restoreBackup } from '../../server/backup/restore.ts'
import { openControlAt } from '../../server/control/control-address.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { systemClock } from '../../server/core/clock.ts'
import { temporaryFolder } from '../fixtures.ts'
import { waitFor } from '../wait-for.ts'
import type { BackupChildOptions } from './backup-child.ts'
import { configOf, type NewOrganisations, openService, pausingAt } from './backup-service.ts'
import { type Ended, nodeEnvironment, nodeFlags, nodeWords, runLethe } from './command-line.ts'

export const acme = { tenantId: 'acme', secret: 'acme-owner-secret-of-32-characters!' }
export const globex = { tenantId: 'globex', secret: 'globex-owner-secret-of-32-characters' }

/** Monday 2026-01-05T00:00:00Z. */
const mondayMs = 1_767_571_200_000

const childProgram = fileURLToPath(new URL('backup-child.ts', import.meta.url))

const folders: string[] = []
const children = new Set<ChildProcess>()

export async function cleanUp(): Promise<void> {
  await unended?.()
  for (const child of children) child.kill('SIGKILL')
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
}

export interface BackupDirs {
  readonly dataDir: string
  readonly backupDir: string
  readonly settings: Readonly<Record<string, string>>
}

export function newBackupDirs(): BackupDirs {
  const folder = temporaryFolder()
  folders.push(folder)
  return backupDirsOf(join(folder, 'data'), join(folder, 'backups'))
}

export function backupDirsOf(dataDir: string, backupDir: string): BackupDirs {
  return { dataDir, backupDir, settings: { LETHE_DATA_DIR: dataDir, LETHE_BACKUP_DIR: backupDir } }
}

/**
 * Makes a state with a stopped service when it is first needed. Every call puts its folders back as they were
 * then, at the same path, because a data folder records where its backups are.
 */
export function madeOnce<T extends { readonly dirs: BackupDirs }>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<{ readonly state: T; readonly saved: string }> | null = null
  const makeAndSave = async () => {
    const state = await make()
    const saved = newBackupDirs().dataDir
    cpSync(dirname(state.dirs.dataDir), saved, { recursive: true, verbatimSymlinks: true })
    return { state, saved }
  }
  return async () => {
    made ??= makeAndSave()
    const { saved, state } = await made
    const folder = dirname(state.dirs.dataDir)
    rmSync(folder, { recursive: true, force: true })
    cpSync(saved, folder, { recursive: true, verbatimSymlinks: true })
    return state
  }
}

/** Runs `lethe` until it ends. */
export function lethe(dirs: BackupDirs, ...words: string[]): Promise<Ended> {
  return runLethe({ PATH: process.env.PATH, LETHE_PORT: '0', ...dirs.settings }, words)
}

/** Starts `lethe`; resolves `saying` when it has printed that text on standard error. */
export function startLethe(dirs: BackupDirs, saying: RegExp, ...words: string[]) {
  const env = { ...nodeEnvironment, PATH: process.env.PATH, LETHE_PORT: '0', ...dirs.settings }
  const child = spawn(process.execPath, [...nodeWords, ...words], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  children.add(child)
  const said = Promise.withResolvers<void>()
  let err = ''
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString()
    if (saying.test(err)) said.resolve()
  })
  const ended = once(child, 'close').then(([code]) => {
    children.delete(child)
    said.reject(new Error(`it ended with ${code}: ${err}`))
    return { code: code as number | null, err }
  })
  said.promise.catch(() => {})
  return { saying: said.promise, ended }
}

/** Takes a backup with the command; returns its id. */
export async function takeBackup(dirs: BackupDirs): Promise<string> {
  const { code, err, out } = await lethe(dirs, 'backup', 'create')
  assert.equal(code, 0, err)
  const [id = '', status] = out.split(/ +/)
  assert.equal(status, 'ready')
  return id
}

function withRegister<T>(dirs: BackupDirs, work: (register: BackupRegister) => Promise<T>): Promise<T> {
  const control = openControlAt(configOf(dirs.settings).control)
  return work(new BackupRegister(control, systemClock)).finally(() => control.destroy())
}

/** Requests a backup of the running service as the command does; returns its id when it is taken. */
export function takeBackupHere(dirs: BackupDirs): Promise<string> {
  const { backupDir, backupKeepDays } = configOf(dirs.settings)
  return withRegister(dirs, async (register) => {
    const id = await register.request(backupDir, backupKeepDays, operatorActor('test'))
    const taken = await waitFor(
      () => register.find(id),
      (row) => row?.status === 'ready' || row?.status === 'failed',
    )
    assert.equal(taken?.status, 'ready', taken?.error ?? '')
    return id
  })
}

/** Resolves when a command has requested a backup. */
export async function untilRequested(dirs: BackupDirs): Promise<void> {
  await withRegister(dirs, (register) =>
    waitFor(
      () => register.list(),
      (rows) => rows.some(({ status }) => status === 'requested'),
    ),
  )
}

/** Restores a backup as the command does: the engine is closed again when it resolves. */
export async function restoreHere(
  dirs: BackupDirs,
  backup: string,
  isControlReplaced = false,
): Promise<void> {
  const failpoint = async () => {}
  const { manifest } = await restoreBackup({
    ...configOf(dirs.settings),
    backup: join(dirs.backupDir, backup),
    isControlReplaced,
    isJournalLost: false,
    failpoint,
  })
  assert.equal(manifest.backup_id, backup)
}

export interface Process {
  /** When it listens; before it is ready. */
  readonly address: string
  readonly ready: Promise<void>
  /** Resolves when it is paused at its failpoint. */
  readonly standing: Promise<void>
}

/** A service in this process: it starts in half the time of one that loads the program first. */
export interface Here extends Process {
  readonly app: App
  goOn(): void
  terminate(): Promise<void>
}

interface ServiceChanges {
  readonly organisations?: NewOrganisations
  /** Failpoint at which to pause, once. */
  readonly standStill?: string | null
}

/** Of a test that failed before it has ended its service. The engine allows one folder at a time. */
let unended: (() => Promise<void>) | null = null

export async function serve(
  dirs: BackupDirs,
  { organisations = [], standStill }: ServiceChanges = {},
): Promise<Here> {
  await unended?.()
  const listening = Promise.withResolvers<string>()
  const standing = Promise.withResolvers<void>()
  const continued = Promise.withResolvers<void>()
  const failpoint = pausingAt(standStill ?? null, () => {
    standing.resolve()
    return continued.promise
  })
  const { app, start } = await openService(dirs.settings, organisations, failpoint)
  const terminate = async () => {
    unended = null
    continued.resolve()
    await app.close()
  }
  unended = terminate
  const ready = start(listening.resolve)
  ready.catch(listening.reject)
  return {
    app,
    address: await listening.promise,
    ready,
    standing: standing.promise,
    goOn: continued.resolve,
    terminate,
  }
}

export async function serveReady(dirs: BackupDirs, changes: ServiceChanges = {}): Promise<Here> {
  const service = await serve(dirs, changes)
  await service.ready
  return service
}

export interface Child extends Process {
  kill(): Promise<void>
}

/** Starts the service in its own process, and resolves when it listens. */
export async function serveInChild(dirs: BackupDirs, changes: ServiceChanges): Promise<Child> {
  const child = startChild(dirs, changes)
  return { ...child, address: await child.listening }
}

/** Begins a restore and kills it at a failpoint. */
export async function killRestoreAt(
  dirs: BackupDirs,
  point: string,
  restore: NonNullable<BackupChildOptions['restore']>,
): Promise<void> {
  const child = startChild(dirs, { restore, standStill: point })
  await child.standing
  await child.kill()
}

function startChild({ settings }: BackupDirs, changes: Partial<Omit<BackupChildOptions, 'settings'>>) {
  const options: BackupChildOptions = {
    settings,
    organisations: [],
    standStill: null,
    restore: null,
    ...changes,
  }
  const child = spawn(process.execPath, [...nodeFlags, childProgram, JSON.stringify(options)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  children.add(child)
  const ended = once(child, 'exit').then(([code]) => {
    children.delete(child)
    return code as number | null
  })
  const listening = Promise.withResolvers<string>()
  const ready = Promise.withResolvers<void>()
  const standing = Promise.withResolvers<void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    const fact: { address?: string; isReady?: boolean; standsAt?: string } = JSON.parse(line)
    if (fact.address !== undefined) listening.resolve(fact.address)
    if (fact.isReady) ready.resolve()
    if (fact.standsAt !== undefined) standing.resolve()
  })
  void ended.then((code) => {
    const error = new Error(`the child ended with ${code}`)
    for (const waiting of [listening, ready, standing]) {
      waiting.promise.catch(() => {})
      waiting.reject(error)
    }
  })
  return {
    listening: listening.promise,
    ready: ready.promise,
    standing: standing.promise,
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

export function ask(service: Process, secret: string, path: string, init: RequestInit = {}) {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  return fetch(`${service.address}${path}`, { ...init, headers })
}

/** Sends log records, a body at each hour from Monday on, and returns the status. */
export async function send(
  service: Process,
  { secret }: { secret: string },
  bodies: readonly string[],
  firstHour = 0,
): Promise<number> {
  const logRecords = bodies.map((stringValue, i) => ({
    timeUnixNano: `${mondayMs + (firstHour + i) * 3_600_000}000000`,
    body: { stringValue },
  }))
  const body = JSON.stringify({ resourceLogs: [{ scopeLogs: [{ logRecords }] }] })
  return (await ask(service, secret, '/v1/logs', { method: 'POST', body })).status
}

/** Every log body of the organisation, in alphabetical order, over all pages. */
export async function bodiesOf(service: Process, { secret }: { secret: string }): Promise<string[]> {
  const bodies: string[] = []
  let cursor: string | null = null
  do {
    const query = new URLSearchParams({
      start: '2026-01-01T00:00:00Z',
      end: '2026-02-01T00:00:00Z',
      limit: '500',
    })
    if (cursor !== null) query.set('cursor', cursor)
    const answer = await ask(service, secret, `/telemetry/logs?${query}`)
    assert.equal(answer.status, 200, await answer.clone().text())
    const page = (await answer.json()) as { items: { body: string }[]; next_cursor: string | null }
    bodies.push(...page.items.map(({ body }) => body))
    cursor = page.next_cursor
  } while (cursor !== null)
  return bodies.sort()
}

interface Deletion {
  readonly request_id: string
  readonly status: string
  readonly backups_clear_by: string | null
  readonly requested_by: string
  readonly approved_by: string | null
  readonly detail: Record<string, unknown>
}

export async function readDeletion(service: Process, requestId: string): Promise<Deletion> {
  const answer = await ask(service, acme.secret, `/usage/storage/deletions/${requestId}`)
  assert.equal(answer.status, 200, await answer.clone().text())
  return (await answer.json()) as Deletion
}

/** Erases acme's telemetry before the given hour and waits until that is completed. */
export async function eraseBefore(service: Process, hour: number): Promise<Deletion> {
  return completed(service, await requestErasure(service, hour))
}

/** Requests an erasure of acme's telemetry before the given hour; returns its id. */
export async function requestErasure(service: Process, hour: number): Promise<string> {
  const body = JSON.stringify({
    scope: 'range',
    range_end: new Date(mondayMs + hour * 3_600_000).toISOString(),
    confirm: 'acme',
  })
  const answer = await ask(service, acme.secret, '/usage/storage/deletions', { method: 'POST', body })
  assert.equal(answer.status, 202, await answer.clone().text())
  return ((await answer.json()) as Deletion).request_id
}

/** Waits until a request is completed. */
export function completed(service: Process, requestId: string): Promise<Deletion> {
  return waitFor(
    () => readDeletion(service, requestId),
    ({ status }) => status === 'completed',
  )
}

/** Ledger entries of a request, oldest first. */
export async function eventsOf(service: Process, requestId: string): Promise<string[]> {
  const answer = await ask(service, acme.secret, '/ledger?limit=200')
  assert.equal(answer.status, 200)
  const page = (await answer.json()) as {
    items: { request_id: string; actor: string; to_status: string }[]
  }
  return page.items
    .filter(({ request_id }) => request_id === requestId)
    .map(({ actor, to_status }) => `${actor} ${to_status}`)
    .reverse()
}
