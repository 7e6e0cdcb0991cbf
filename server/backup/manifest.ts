// The manifest of a backup: the data folder that it belongs to, when it was taken, the versions that can read
// it, and the seal of each of its files. Written last, so that a folder with a manifest is complete; read
// first, so that nothing is changed for a backup that can't be restored.

import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { fileBounds, parseBoundedJson } from '../core/input/json-bounds.ts'
import { createTableText } from '../telemetry/schema/create-schema.ts'
import { tables } from '../telemetry/schema/tables.ts'
import { type FileSeals, FileSeals as FileSealsSchema, isMissing, syncPath } from './files.ts'

/** Names in a backup's folder. */
export const manifestFile = 'manifest.json'
export const controlFile = 'control.db'
export const instanceFile = 'instance-id'
export const engineFolder = 'engine'

export const backupIdPattern = /^bak_[0-9a-z]{26}$/

const Manifest = z.strictObject({
  format: z.literal(1),
  backup_id: z.string().regex(backupIdPattern),
  /** Everything that was committed before this time is in it. */
  taken_at_ms: z.int(),
  expires_at_ms: z.int(),
  /**
   * Ids of all erasures that were completed when the backup began: it contains nothing of them, whatever the
   * dates are. Backups of earlier versions have no such list.
   */
  erased: z.array(z.string()).optional(),
  service_version: z.string(),
  engine_version: z.string(),
  /** SHA-256 of the text of all telemetry tables. */
  telemetry_schema: z.string(),
  /** Name of the newest migration of the control plane. */
  migration: z.string(),
  /** SHA-256 of the data folder's secret: shows whether two belong together without revealing it. */
  instance_hash: z.string(),
  files: FileSealsSchema,
})

export type Manifest = z.infer<typeof Manifest>

/** The backup can't be taken, found or restored. The message is for the operator. */
export class BackupError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'BackupError'
  }
}

export async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  const path = join(folder, manifestFile)
  await writeFile(path, `${JSON.stringify(Manifest.parse(manifest), null, 1)}\n`, {
    mode: 0o600,
    flush: true,
  })
  await syncPath(folder)
}

/** Returns null where the folder has no manifest. Throws BackupError where this version can't read it. */
export async function readManifest(folder: string): Promise<Manifest | null> {
  let text: string
  try {
    text = await readFile(join(folder, manifestFile), 'utf8')
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
  const read = Manifest.safeParse(parseJson(text))
  if (read.success) return read.data
  throw new BackupError(`${join(folder, manifestFile)} is not a manifest that this version can read.`)
}

function parseJson(text: string): unknown {
  try {
    return parseBoundedJson(text, fileBounds)
  } catch {
    return null
  }
}

export function bytesOf(files: FileSeals): number {
  return Object.values(files).reduce((sum, { bytes }) => sum + bytes, 0)
}

export function instanceHash(secret: string): string {
  return sha256(secret)
}

/** Two programs with the same hash have the same telemetry tables. */
export function telemetrySchemaHash(): string {
  return sha256(tables.map(createTableText).join('\n'))
}

/**
 * Hashes of the tables of earlier builds that `createSchema` brings up to date: with maps, without and with
 * SeriesId, and with maps that are computed in the tables.
 */
const olderSchemas = [
  'ada766a129b7af00db3b33a0f2d4005c2d8fd7bd0ea8bb12cf90cb7b3b651207',
  '12d0d2f4c044404c8463a9b9304a87336c102a57070f1f4a399ea6884efae448',
  '647d8957a0de0ef10f94ed147900ecc86eeb7472f720eaac85745e8bacad2767',
]

/** Whether tables with that hash can be brought up to date by this program. */
export function isReadableSchema(hash: string): boolean {
  return hash === telemetrySchemaHash() || olderSchemas.includes(hash)
}

function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex')
}
