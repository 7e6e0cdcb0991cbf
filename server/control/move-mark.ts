// Marks of a move of the control plane between two databases (server/move/). At any moment at most one of the
// two can be used: the target is marked from before its first row until after the source is marked.

import { ControlPlaneError } from './control-plane-error.ts'
import type { Control } from './database.ts'

export interface MoveMark {
  /** `arriving`: a target that is not complete; `left`: a source that was moved. */
  readonly state: 'arriving' | 'left'
  /** The other database, without a password. */
  readonly other: string
  /** Names the installation that is moved; no secret. */
  readonly installation: string
}

/** Returns the mark; null where there is none. The database has the newest schema. */
export async function readMark(control: Control): Promise<MoveMark | null> {
  const row = await control.selectFrom('control_moves').selectAll().executeTakeFirst()
  return row === undefined ? null : { ...row, state: row.state === 'left' ? 'left' : 'arriving' }
}

export async function setMark(control: Control, mark: MoveMark): Promise<void> {
  await control.insertInto('control_moves').values(mark).execute()
}

export async function removeMark(control: Control): Promise<void> {
  await control.deleteFrom('control_moves').execute()
}

/** Throws ControlPlaneError where the control plane was moved away or has not arrived completely. */
export async function assertUsable(control: Control): Promise<void> {
  const mark = await readMark(control)
  if (mark === null) return
  throw new ControlPlaneError(
    mark.state === 'left'
      ? `This control plane was moved to ${mark.other} and is no longer used; set LETHE_CONTROL_URL to that database.`
      : `This control plane is incomplete: its move from ${mark.other} was interrupted. Repeat the same "lethe migrate control"; until then the other one can be used.`,
  )
}
