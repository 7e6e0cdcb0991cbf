// A control plane in a file that two handles have open, as two processes would, for tests of the bytes in the
// file and of what happens between two slices of a rewriting.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../../tests/fixtures.ts'
import { Pace } from '../../core/turns/pace.ts'
import { migrate } from '../migrate.ts'
import { openSqlite } from './sqlite.ts'

/** The caller closes both handles and removes the folder. */
export async function openTwice() {
  const folder = temporaryFolder()
  const path = join(folder, 'control.db')
  const control = openSqlite(path)
  await migrate(control)
  return { folder, path, control, other: openSqlite(path) }
}

/** Each step is a slice of its own, and `turn` runs before each. */
export function everyStep(turn: () => Promise<unknown>): Pace {
  let ms = 0
  return new Pace(turn, () => (ms += 1000))
}

/** Names of the files of a folder that contain the text. */
export function filesWith(folder: string, text: string): string[] {
  return readdirSync(folder).filter((name) => readFileSync(join(folder, name)).includes(text))
}
