// Databases that had the control plane, or a part of it, and are not used any more: the source of a move, and
// the target of a move that was not finished. No erasure reaches them, and they keep what is erased later. A
// file is seen, and an erasure is not complete while it is there. A database of a server can't be seen from
// here, so certificates name it. A move records both in the control plane that is used.

import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type ControlAddress, controlFilesAt } from './control-address.ts'
import type { Control } from './database.ts'
import { LeftControlPlane } from './erased-flush.ts'

/** Where a control plane is. */
export interface ControlPlace {
  /** The address without a password. */
  readonly name: string
  /** The absolute path of a file; null for a database of a server. */
  readonly file: string | null
}

const prefix = 'left_control_plane '

/** Records a place as one that is not used any more. Does nothing where it is recorded. */
export async function recordLeft(control: Control, { file, name }: ControlPlace): Promise<void> {
  await control
    .insertInto('instance')
    .values({ key: `${prefix}${name}`, value: file ?? '' })
    .onConflict((conflict) => conflict.column('key').doNothing())
    .execute()
}

/** Forgets a place because it is used again. */
export async function forgetLeft(control: Control, { name }: ControlPlace): Promise<void> {
  await control.deleteFrom('instance').where('key', '=', `${prefix}${name}`).execute()
}

/** Returns the recorded files; null for each database of a server. */
async function readLeft(control: Control): Promise<(string | null)[]> {
  const rows = await control.selectFrom('instance').selectAll().where('key', 'like', `${prefix}%`).execute()
  return rows.filter(({ key }) => key.startsWith(prefix)).map(({ value }) => (value === '' ? null : value))
}

/** Sentences of a certificate about databases that can't be seen from here. */
export async function leftNotReached(control: Control): Promise<string[]> {
  if (!(await readLeft(control)).includes(null)) return []
  return [
    'A database of a server that had the control plane before it was moved, or to which a move was begun, unless its operator has deleted it.',
  ]
}

interface UsedPlane {
  readonly control: Control
  readonly address: ControlAddress
  readonly dataDir: string
}

/**
 * Throws {@link LeftControlPlane} while a file of a left control plane exists: one that a move has recorded,
 * or `control.db` in the data folder, which a move by an earlier version has left unrecorded.
 */
export async function assertNoneLeft({ address, control, dataDir }: UsedPlane): Promise<void> {
  const used = address.kind === 'sqlite' ? await fileAt(address.path) : null
  const recorded = (await readLeft(control)).filter((file) => file !== null)
  for (const path of new Set([...recorded, join(dataDir, 'control.db')])) {
    // The used file may be recorded under another path, such as of a link.
    if (used !== null && (await fileAt(path)) === used) continue
    const files: string[] = []
    for (const file of controlFilesAt(path)) if ((await fileAt(file)) !== null) files.push(file)
    if (files.length === 0) continue
    throw new LeftControlPlane(
      `${path} is a control plane that is not used any more and keeps what is erased; when nothing in it is needed, delete ${files.join(', ')}`,
    )
  }
}

/** Identifies a file; null where there is none. Throws where that can't be seen. */
async function fileAt(path: string): Promise<string | null> {
  try {
    const { dev, ino } = await stat(path, { bigint: true })
    return `${dev} ${ino}`
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}
