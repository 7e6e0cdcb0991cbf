// Fixtures that several rooms share: temporary stores, and rows that are easy to recognise. Every option that
// a test passes matters for that test; everything else has a default here.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'
import pino from 'pino'
import type { Control } from '../server/control/database.ts'
import { openChdb } from '../server/telemetry/chdb.ts'
import type { ReadShare, TelemetryEngine, TenantPlace } from '../server/telemetry/engine.ts'
import type { LocalEngine, LocalEngineFiles } from '../server/telemetry/engine-files.ts'
import { TelemetryGate } from '../server/telemetry/gate.ts'
import { type Cell, encodeFixture, type FixtureRow } from '../server/telemetry/row-fixture.ts'
import type { RowBatch, TableExtent } from '../server/telemetry/rows.ts'
import { insertColumns } from '../server/telemetry/schema/create-schema.ts'
import { type TableName, type TableSpec, tables } from '../server/telemetry/schema/tables.ts'
import { render } from '../server/telemetry/sql.ts'
import type { SharedTestControl } from './control-plane.ts'
import { openSharedControlPlane } from './control-planes.ts'

export const silent = pino({ level: 'silent' })

export interface Stores {
  readonly folder: string
  readonly engine: TelemetryEngine
  readonly files: LocalEngineFiles
  readonly control: Control
  /** Direct access of a test to the control plane. */
  readonly plane: SharedTestControl
  close(): Promise<void>
}

interface OpenEngine {
  readonly folder: string
  readonly engine: LocalEngine
  /** Closes the engine and removes its folder. */
  close(): Promise<void>
}

/** An empty engine in a temporary folder. The engine allows one at a time per process. */
async function openEngine(): Promise<OpenEngine> {
  const folder = temporaryFolder()
  const engine = await openChdb({ folder, maxMemoryBytes: 2 ** 30 })
  const close = async () => {
    await engine.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { folder, engine, close }
}

/**
 * An empty engine in a temporary folder, and an empty control plane. Only one at a time per process, because
 * the engine allows no more.
 */
export async function openStores(): Promise<Stores> {
  const opened = await openEngine()
  const plane = await openSharedControlPlane()
  return {
    ...opened,
    files: opened.engine.files,
    control: plane.control,
    plane,
    async close() {
      await plane.close()
      await opened.close()
    },
  }
}

/**
 * Opens the engine on a folder that stays, and closes it when `work` has ended, so that it can be opened
 * again.
 */
export async function withEngine<T>(folder: string, work: (engine: LocalEngine) => Promise<T>): Promise<T> {
  const engine = await openChdb({ folder, maxMemoryBytes: 2 ** 30 })
  try {
    return await work(engine)
  } finally {
    await engine.close()
  }
}

/** The port of an engine as single calls, so that a test can replace one of them. */
export function delegate(engine: TelemetryEngine): TelemetryEngine {
  return delegateTo(async () => engine)
}

/**
 * The engine with a callback that gets the text of each statement before it is read, and for whom. The read
 * waits for it.
 */
export function watchedEngine(
  engine: TelemetryEngine,
  beforeRead: (statement: string, share: ReadShare | undefined) => unknown,
): TelemetryEngine {
  return {
    ...delegate(engine),
    async select(statement, limits, share) {
      await beforeRead(render(statement), share)
      return engine.select(statement, limits, share)
    },
    async bytes(statement, limits, share) {
      await beforeRead(render(statement), share)
      return engine.bytes(statement, limits, share)
    },
  }
}

/**
 * A gate with a callback after the reads of a response, which is before the response is written: after each
 * call of {@link TelemetryGate.together} that is not inside another one.
 */
export class WatchedGate extends TelemetryGate {
  afterReads: (() => void) | null = null
  #depth = 0

  override async together<T>(tenantId: string, read: () => Promise<T>, repeatsMax?: number): Promise<T> {
    this.#depth++
    try {
      return await super.together(tenantId, read, repeatsMax)
    } finally {
      this.#depth--
      if (this.#depth === 0) this.afterReads?.()
    }
  }
}

function delegateTo(engineOf: () => Promise<TelemetryEngine>): TelemetryEngine {
  return {
    select: async (...given) => (await engineOf()).select(...given),
    bytes: async (...given) => (await engineOf()).bytes(...given),
    command: async (...given) => (await engineOf()).command(...given),
    insert: async (...given) => (await engineOf()).insert(...given),
    close: async () => (await engineOf()).close(),
  }
}

/**
 * An empty engine that is open while the tests of the file run. It is not opened while the file is loaded,
 * because another file of the same process may have its engine open then. In a file that runs alone, Node
 * starts all hooks at once, so calls of a hook wait until the engine is open.
 */
export function engineOfFile(): TelemetryEngine {
  let opened: Promise<OpenEngine> | null = null
  before(async () => {
    opened = openEngine()
    await opened
  })
  after(async () => (await opened)?.close())
  return delegateTo(async () => {
    if (opened === null) throw new Error('The engine is open while tests run.')
    return (await opened).engine
  })
}

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'lethe-test-'))
}

/** Returns a function that creates temporary folders. All of them are removed after the tests of the file. */
export function temporaryFolders(): () => string {
  const folders: string[] = []
  after(() => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  })
  return () => {
    const folder = temporaryFolder()
    folders.push(folder)
    return folder
  }
}

export function tableSpec(name: TableName): TableSpec {
  const spec = tables.find((table) => table.name === name)
  if (spec === undefined) throw new Error(`There is no table ${name}.`)
  return spec
}

/** Rows of one table without an organisation, with their extent in time. */
export interface CellRows extends TableExtent {
  readonly rows: readonly FixtureRow[]
  readonly timesNs: readonly bigint[]
}

/**
 * Rows at the given times, with the same values in the given columns; other columns have the engine's empty
 * value.
 */
export function batchOf(
  table: TableName,
  timesNs: readonly bigint[],
  columns: Readonly<Record<string, Cell>> = {},
): CellRows {
  const { timeColumn } = tableSpec(table)
  const sorted = timesNs.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  return {
    table,
    rows: timesNs.map((timeNs) => ({ ...columns, [timeColumn]: timeNs })),
    timesNs,
    minTimeNs: sorted[0] ?? 0n,
    maxTimeNs: sorted.at(-1) ?? 0n,
  }
}

/** The rows as a decoder passes them to the writer. */
export function encodeRows(place: TenantPlace, parts: readonly CellRows[]): RowBatch {
  return parts.map((part) => {
    const columns = insertColumns(tableSpec(part.table))
    const encoded = part.rows.map((row) => encodeFixture(columns, place, [row]))
    let end = 0
    const marks = part.timesNs.flatMap((timeNs, at) => {
      end += encoded[at]?.length ?? 0
      return [end, Number(timeNs >> 32n), Number(timeNs & 0xffff_ffffn)]
    })
    const { table, minTimeNs, maxTimeNs } = part
    return {
      table,
      place,
      bytes: Buffer.concat(encoded),
      marks: Uint32Array.from(marks),
      minTimeNs,
      maxTimeNs,
    }
  })
}

/** Inserts rows into the engine without the writer, for tests of other parts. */
export async function insertRows(engine: TelemetryEngine, place: TenantPlace, part: CellRows): Promise<void> {
  const columns = insertColumns(tableSpec(part.table))
  await engine.insert(part.table, columns, [encodeFixture(columns, place, part.rows)])
}
